"""Deploys the operator of a project: applies its objects, waits until it works, keeps revisions, and removes it again.

Everything here talks to a cluster through a `Client`; the revisions are in the cluster, so that any machine can continue.
"""
