"""StatefulSet: pods that keep their names and their volumes."""

from navarch.cluster.controllers.workloads.statefulsets.controller import declare

__all__ = ["declare"]
