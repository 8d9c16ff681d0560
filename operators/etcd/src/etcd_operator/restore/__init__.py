"""Restores: the operator downloads and verifies a snapshot before it changes the cluster."""

from etcd_operator.restore.keeper import ApiBackupKeeper
from etcd_operator.restore.kinds import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.lock import snapshots_in_use
from etcd_operator.restore.reconcile import RestoreReconciler

__all__ = ["ApiBackupKeeper", "EtcdRestore", "EtcdRestoreSpec", "RestoreReconciler", "snapshots_in_use"]
