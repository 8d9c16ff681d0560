"""Backups: the operator takes a snapshot, verifies it, stores it, and reads it back. Only then it counts."""

from etcd_operator.backup.archive import Archive, Manifest
from etcd_operator.backup.kinds import EtcdBackup, EtcdBackupSpec
from etcd_operator.backup.reconcile import BackupReconciler
from etcd_operator.backup.schedule import BackupMetrics
from etcd_operator.backup.snapshots import SnapshotVerifier, find_etcdutl
from etcd_operator.backup.store_opener import StoreOpener
from etcd_operator.destinations import (
    AbsSource,
    BackupDestination,
    BackupPolicy,
    GcsSource,
    LocalSource,
    PvcSource,
    S3Source,
)

__all__ = [
    "AbsSource",
    "Archive",
    "BackupDestination",
    "BackupMetrics",
    "BackupPolicy",
    "BackupReconciler",
    "EtcdBackup",
    "EtcdBackupSpec",
    "GcsSource",
    "LocalSource",
    "Manifest",
    "PvcSource",
    "S3Source",
    "SnapshotVerifier",
    "StoreOpener",
    "find_etcdutl",
]
