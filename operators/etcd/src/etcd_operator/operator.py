"""The operator, put together."""

from __future__ import annotations

from pathlib import Path

from etcd_operator.backup import BackupReconciler, BackupTimes, EtcdBackup, Stores, Trial, tool
from etcd_operator.etcd import Connect
from etcd_operator.gateways import Connections
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import PYTHON_IMAGE
from etcd_operator.reaching import Reach
from etcd_operator.reconcile import Reconciler
from etcd_operator.restore import EtcdRestore, Keeping, RestoreReconciler, being_restored
from etcd_operator.rights import RIGHTS
from etcd_operator.trust import Keyring
from navarch import Cached, Endpoints, Key, Operator
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, Service
from navarch.k8s.policy.v1 import PodDisruptionBudget

__all__ = ["etcd_operator"]


_BACKUP_SECONDS = 4 * 3600.0
"""No backup takes longer, whatever its own limit."""


def etcd_operator(
    connect: Connect | None = None,
    *,
    namespaces: tuple[str, ...] = (),
    endpoints: Endpoints | None = None,
    backups: Path | None = None,
    python_image: str = PYTHON_IMAGE,
    etcdutl: Path | None = None,
) -> Operator:
    """An operator of clusters in these namespaces, or in all; `connect` says how their etcd is reached, if otherwise
    than over its gateways.

    Backups that are asked for in a folder go below `backups`; without it they are refused.
    `python_image` runs before the first member of a cluster that is restored, and where a claim is mounted. Snapshots are tried with `etcdutl`, or
    with the one that this machine has, if it has one.
    """
    operator = Operator("etcd-operator", namespaces=namespaces, endpoints=endpoints, uses=RIGHTS)
    ours = "app=etcd"
    pods = Cached(Pod, labels=ours)
    owns = (
        pods,
        Cached(PersistentVolumeClaim, labels=ours),
        Cached(Service, labels=ours),
        Cached(PodDisruptionBudget, labels=ours),
        EtcdBackup,
        EtcdRestore,
    )
    stores, trial, keyring = Stores(backups, python_image), Trial(etcdutl or tool()), Keyring()
    reach = Reach(keyring)
    reconciler = Reconciler(connect or Connections(), keyring, Keeping(stores))
    operator.controller(EtcdCluster, owns=owns, timeout=60)(reconciler.reconcile)
    operator.background(reconciler.forget_gone)
    times = BackupTimes(namespaces)
    operator.background(times.follow)
    snapshots = BackupReconciler(stores, reach, trial, being_restored, times)
    operator.controller(EtcdBackup, watches={pods: _nobody}, timeout=_BACKUP_SECONDS)(snapshots.reconcile)
    restores = RestoreReconciler(stores, reach, trial, python_image)
    operator.controller(EtcdRestore, watches={pods: _nobody}, timeout=_BACKUP_SECONDS)(restores.reconcile)
    return operator


def _nobody(pod: Pod, lookup: object) -> tuple[Key, ...]:  # noqa: ARG001 - the form of a mapping
    """Backups and restores make pods and wait for them: what becomes of these does not begin them anew."""
    return ()
