"""The scheduler: which pod goes to which node.

Pods that wait stand in a queue by priority. For each, filters say which nodes can take it, scores which of them does so
best. What is on the nodes is kept up to date pod by pod, never computed anew.
"""
