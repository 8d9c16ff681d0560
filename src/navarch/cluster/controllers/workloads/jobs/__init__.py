"""Job: pods that run to their end, as often as it takes."""

from navarch.cluster.controllers.workloads.jobs.controller import declare

__all__ = ["declare"]
