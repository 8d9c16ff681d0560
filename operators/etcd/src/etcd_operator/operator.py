"""The operator, put together."""

from __future__ import annotations

from etcd_operator.etcd import Connect, plain
from etcd_operator.kinds import EtcdCluster
from etcd_operator.reconcile import Reconciler
from navarch import Cached, Endpoints, Operator
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, Service
from navarch.k8s.policy.v1 import PodDisruptionBudget

__all__ = ["etcd_operator"]


def etcd_operator(
    connect: Connect = plain, *, namespaces: tuple[str, ...] = (), endpoints: Endpoints | None = None
) -> Operator:
    """An operator of clusters in these namespaces, or in all; `connect` says how their etcd is reached."""
    operator = Operator("etcd-operator", namespaces=namespaces, endpoints=endpoints)
    ours = "app=etcd"
    owns = (
        Cached(Pod, labels=ours),
        Cached(PersistentVolumeClaim, labels=ours),
        Cached(Service, labels=ours),
        Cached(PodDisruptionBudget, labels=ours),
    )
    operator.controller(EtcdCluster, owns=owns, timeout=60)(Reconciler(connect).reconcile)
    return operator
