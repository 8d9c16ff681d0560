"""The scheduler: assigns pending pods to nodes.

Pending pods are in a queue by priority. For each, filters reject nodes and scores rank the others. The state of nodes is
updated pod by pod, never computed again.
"""
