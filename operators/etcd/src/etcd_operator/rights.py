"""What the operator has to be allowed, verb by verb; its Lease and its definitions come on top.

operators/etcd/deploy/rbac.yaml is written from it: `python -m etcd_roles`.
"""

from __future__ import annotations

from typing import Final

from etcd_operator.backup import EtcdBackup
from etcd_operator.kinds import EtcdCluster
from etcd_operator.restore import EtcdRestore
from navarch.k8s.core.v1 import Node, PersistentVolumeClaim, Pod, Secret, Service
from navarch.k8s.events.v1 import Event
from navarch.k8s.policy.v1 import PodDisruptionBudget
from navarch.operator import Uses

__all__ = ["RIGHTS", "SECRET_RIGHTS"]

_FOLLOWED: Final = ("get", "list", "watch")
_APPLIED: Final = (*_FOLLOWED, "create", "patch")

RIGHTS: Final = (
    Uses(EtcdCluster, (*_FOLLOWED, "patch")),
    Uses(EtcdCluster, ("patch", "update"), "status"),
    Uses(EtcdCluster, ("update",), "finalizers"),  # some clusters ask for it where children hold up their owner
    Uses(EtcdBackup, (*_FOLLOWED, "create", "delete", "patch")),
    Uses(EtcdBackup, ("update",), "status"),
    Uses(EtcdRestore, (*_FOLLOWED, "create")),
    Uses(EtcdRestore, ("update",), "status"),
    Uses(Pod, (*_FOLLOWED, "create", "delete", "patch")),
    Uses(PersistentVolumeClaim, (*_FOLLOWED, "create", "delete", "patch")),
    Uses(Service, _APPLIED),
    Uses(PodDisruptionBudget, _APPLIED),
    Uses(Node, ("get",)),  # those of silent members
    Uses(Event, ("create", "patch")),
)
"""In the whole cluster, or in each namespace that it is for."""
SECRET_RIGHTS: Final = Uses(Secret, ("create", "get", "patch"))
"""In each namespace for itself, by a RoleBinding: without it, the operator works there as far as it goes without Secrets."""
