"""Restores: a snapshot is fetched and checked first, and only then anything is touched."""

from etcd_operator.restore.keeping import Keeping
from etcd_operator.restore.kinds import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.reconcile import RestoreReconciler
from etcd_operator.restore.turns import being_restored

__all__ = ["EtcdRestore", "EtcdRestoreSpec", "Keeping", "RestoreReconciler", "being_restored"]
