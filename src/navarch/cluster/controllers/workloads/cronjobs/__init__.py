"""CronJob: Jobs by the clock."""

from navarch.cluster.controllers.workloads.cronjobs.controller import declare

__all__ = ["declare"]
