"""DaemonSet: one pod on every node that suits it."""

from navarch.cluster.controllers.workloads.daemonsets.controller import declare

__all__ = ["declare"]
