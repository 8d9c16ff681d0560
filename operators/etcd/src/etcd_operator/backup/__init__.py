"""Backups: a snapshot is taken, checked, put away, read back and checked again. Only then it counts."""

from etcd_operator.backup.archive import Archive, Manifest
from etcd_operator.backup.kinds import EtcdBackup, EtcdBackupSpec, LocalSource, Place, S3Source
from etcd_operator.backup.reconcile import BackupReconciler
from etcd_operator.backup.stores import Stores

__all__ = [
    "Archive",
    "BackupReconciler",
    "EtcdBackup",
    "EtcdBackupSpec",
    "LocalSource",
    "Manifest",
    "Place",
    "S3Source",
    "Stores",
]
