"""The one operator of the built-in controllers."""

from __future__ import annotations

from navarch.cluster.controllers.workloads import cronjobs, daemonsets, deployments, jobs, replicasets, statefulsets
from navarch.operator import Operator

__all__ = ["builtin_operator"]


def builtin_operator() -> Operator:
    """What kube-controller-manager does, as one operator: each kind is watched once."""
    operator = Operator("navarch-controllers", crds="ignore", election=False, check_permissions=False)
    cronjobs.declare(operator)
    daemonsets.declare(operator)
    deployments.declare(operator)
    jobs.declare(operator)
    replicasets.declare(operator)
    statefulsets.declare(operator)
    return operator
