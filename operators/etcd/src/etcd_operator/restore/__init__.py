"""Restores: a snapshot is fetched and checked first, and only then anything is touched."""

from etcd_operator.restore.keeper import ApiBackupKeeper
from etcd_operator.restore.kinds import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.lock import snapshots_in_use
from etcd_operator.restore.reconcile import RestoreReconciler

__all__ = ["ApiBackupKeeper", "EtcdRestore", "EtcdRestoreSpec", "RestoreReconciler", "snapshots_in_use"]
