"""`etcd_operator` assembles the operator: controllers, background tasks and the permissions that they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from etcd_operator.backup import (
    BackupMetrics,
    BackupReconciler,
    EtcdBackup,
    SnapshotVerifier,
    StoreOpener,
    find_etcdutl,
)
from etcd_operator.backup.credentials import AmbientCredentials
from etcd_operator.backup.schedule import WORKERS
from etcd_operator.backup.snapshots import MAX_BYTES
from etcd_operator.connector import EtcdConnector
from etcd_operator.etcd import Connect
from etcd_operator.gateway import GatewayConnector
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import PYTHON_IMAGE
from etcd_operator.reconcile import Reconciler
from etcd_operator.restore import ApiBackupKeeper, EtcdRestore, RestoreReconciler, snapshots_in_use
from etcd_operator.tls import CredentialCache
from etcd_operator.webhook import declare_webhooks
from navarch import Cached, Endpoints, Operator
from navarch.k8s.core.v1 import Node, PersistentVolumeClaim, Pod, Secret, Service
from navarch.k8s.events.v1 import Event
from navarch.k8s.policy.v1 import PodDisruptionBudget
from navarch.operator import Uses
from navarch.operator.roles import CrdPolicy

_FOLLOWED: Final = ("get", "list", "watch")
_APPLIED: Final = (*_FOLLOWED, "create", "patch")

RIGHTS: Final = (
    Uses(EtcdCluster, (*_FOLLOWED, "patch")),
    Uses(EtcdCluster, ("patch", "update"), "status"),
    Uses(
        EtcdCluster, ("update",), "finalizers"
    ),  # OwnerReferencesPermissionEnforcement requires it for blockOwnerDeletion
    Uses(EtcdBackup, (*_FOLLOWED, "create", "delete", "patch")),
    Uses(EtcdBackup, ("update",), "status"),
    Uses(EtcdRestore, (*_FOLLOWED, "create")),
    Uses(EtcdRestore, ("update",), "status"),
    Uses(Pod, (*_FOLLOWED, "create", "delete", "patch")),
    Uses(PersistentVolumeClaim, (*_FOLLOWED, "create", "delete", "patch")),
    Uses(Service, _APPLIED),
    Uses(PodDisruptionBudget, _APPLIED),
    Uses(Node, ("get",)),  # the nodes of silent members
    Uses(Event, ("create", "patch")),
)
"""The permissions of the operator, in the whole cluster or in each watched namespace; its Lease and CRDs come on top."""
SECRET_RIGHTS: Final = Uses(Secret, ("create", "get", "patch"), role="secrets")
"""Granted per namespace by a RoleBinding; without it the operator manages only clusters that need no Secrets."""


_BACKUP_SECONDS = 4 * 3600.0
"""The upper bound of one backup, whatever its own timeout is."""


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
    webhooks: bool = False,
) -> Operator:
    """Returns an operator for the EtcdClusters of these namespaces, or of all.

    `connect` replaces the connection over etcd's gateways, for tests. `local` backups are stored below `backups`; without
    it the operator refuses them. `ambient` is the file of rules that allow namespaces to use the operator's own cloud
    credentials; without it no namespace may. `python_image` runs in pods that receive a snapshot or mount a claim.
    `etcdutl` verifies snapshots; the default is the one on the PATH. With `webhooks`, users are warned of backups and
    restores that name missing objects. Raises `ConfigError` if `ambient` cannot be read.
    """
    operator = Operator(
        "etcd-operator", namespaces=namespaces, crds=crds, endpoints=endpoints, uses=(*RIGHTS, SECRET_RIGHTS)
    )
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
    stores, trial, keyring = (
        StoreOpener(backups, python_image, own),
        SnapshotVerifier(etcdutl or find_etcdutl()),
        CredentialCache(),
    )
    reach = EtcdConnector(keyring, namespaces)
    reconciler = Reconciler(connect or GatewayConnector(), keyring, ApiBackupKeeper(stores))
    operator.controller(EtcdCluster, owns=owns, timeout=60)(reconciler.reconcile)
    operator.background(reconciler.remove_deleted)
    times = BackupMetrics(namespaces)
    operator.background(times.follow)
    snapshots = BackupReconciler(stores, reach, trial, snapshots_in_use, times, max_bytes=max_snapshot_bytes)
    restores = RestoreReconciler(stores, reach, trial, python_image, max_bytes=max_snapshot_bytes)
    # Backups and restores wait for the pods that they create, in the cache: a change of a pod triggers nothing.
    slow: dict[str, Any] = {"caches": (pods,), "timeout": _BACKUP_SECONDS, "concurrency": WORKERS}
    operator.controller(EtcdBackup, **slow)(snapshots.reconcile)
    operator.controller(EtcdRestore, **slow)(restores.reconcile)
    if webhooks:
        declare_webhooks(operator)
    return operator
