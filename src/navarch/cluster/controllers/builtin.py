"""The one operator of the built-in controllers."""

from __future__ import annotations

from typing import Final

from navarch.cluster.controllers.workloads import cronjobs, daemonsets, deployments, jobs, replicasets, statefulsets
from navarch.operator import Operator

_REPORTERS: Final = {
    **{
        name: f"{name}-controller"
        for name in ("cronjob", "daemonset", "deployment", "job", "replicaset", "statefulset")
    },
    "disruption": "controllermanager",
    "endpoints": "endpoint-controller",
    "endpointslice": "endpoint-slice-controller",
    "endpointslicemirroring": "endpoint-slice-mirroring-controller",
    "job-pods": "job-controller",
    "node-lifecycle": "node-controller",
    "persistentvolume": "persistentvolume-controller",
    "persistentvolume-binder": "persistentvolume-controller",
    "replicationcontroller": "replication-controller",
}
"""As whom Kubernetes' own speak in events."""


def builtin_operator() -> Operator:
    """What kube-controller-manager does, as one operator: each kind is watched once."""
    operator = Operator("navarch-controllers", crds="ignore", election=False, check_permissions=False)
    operator.reporters.update(_REPORTERS)
    cronjobs.declare(operator)
    daemonsets.declare(operator)
    deployments.declare(operator)
    jobs.declare(operator)
    replicasets.declare(operator)
    statefulsets.declare(operator)
    return operator
