"""Deployment: ReplicaSets, one for each version of a pod template, and the way from one to the next."""

from navarch.cluster.controllers.workloads.deployments.controller import declare

__all__ = ["declare"]
