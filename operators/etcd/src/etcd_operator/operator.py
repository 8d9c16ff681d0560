"""The operator, put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etcd_operator.backup import BackupReconciler, BackupTimes, EtcdBackup, Stores, Trial, tool
from etcd_operator.backup.ambient import AmbientCredentials
from etcd_operator.backup.namespace_limit import WORKERS
from etcd_operator.backup.snapshots import MAX_BYTES
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
from navarch.operator.roles import CrdPolicy

__all__ = ["etcd_operator"]


_BACKUP_SECONDS = 4 * 3600.0
"""No backup takes longer, whatever its own limit."""


def etcd_operator(
    connect: Connect | None = None,
    *,
    namespaces: tuple[str, ...] = (),
    crds: CrdPolicy = "install",
    endpoints: Endpoints | None = None,
    backups: Path | None = None,
    ambient: Path | None = None,
    max_snapshot_bytes: int = MAX_BYTES,
    python_image: str = PYTHON_IMAGE,
    etcdutl: Path | None = None,
) -> Operator:
    """An operator of clusters in these namespaces, or in all; `connect` says how their etcd is reached, if otherwise
    than over its gateways.

    Backups that are asked for in a folder go below `backups`; without it they are refused. `ambient` is the file that says
    which namespaces may use the operator's own cloud credentials, for which prefixes; without it none may. Raises
    `ConfigError` if it cannot be read.
    `python_image` runs before the first member of a cluster that is restored, and where a claim is mounted. Snapshots are tried with `etcdutl`, or
    with the one that this machine has, if it has one.
    """
    operator = Operator("etcd-operator", namespaces=namespaces, crds=crds, endpoints=endpoints, uses=RIGHTS)
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
    own = AmbientCredentials(ambient)
    own.rules()
    stores, trial, keyring = Stores(backups, python_image, own), Trial(etcdutl or tool()), Keyring()
    reach = Reach(keyring, namespaces)
    reconciler = Reconciler(connect or Connections(), keyring, Keeping(stores))
    operator.controller(EtcdCluster, owns=owns, timeout=60)(reconciler.reconcile)
    operator.background(reconciler.forget_gone)
    times = BackupTimes(namespaces)
    operator.background(times.follow)
    snapshots = BackupReconciler(stores, reach, trial, being_restored, times, max_bytes=max_snapshot_bytes)
    restores = RestoreReconciler(stores, reach, trial, python_image, max_bytes=max_snapshot_bytes)
    slow: dict[str, Any] = {"watches": {pods: _nobody}, "timeout": _BACKUP_SECONDS, "concurrency": WORKERS}
    operator.controller(EtcdBackup, **slow)(snapshots.reconcile)
    operator.controller(EtcdRestore, **slow)(restores.reconcile)
    return operator


def _nobody(pod: Pod, lookup: object) -> tuple[Key, ...]:  # noqa: ARG001 - the form of a mapping
    """Backups and restores make pods and wait for them: what becomes of these does not begin them anew."""
    return ()
