"""Backups: a snapshot is taken, tried, put away, read back and checked again. Only then it counts."""

from etcd_operator.backup.archive import Archive, Manifest
from etcd_operator.backup.kinds import EtcdBackup, EtcdBackupSpec
from etcd_operator.backup.reconcile import BackupReconciler
from etcd_operator.backup.stores import Stores
from etcd_operator.backup.times import BackupTimes
from etcd_operator.backup.trial import Trial, tool
from etcd_operator.places import AbsSource, BackupPolicy, GcsSource, LocalSource, Place, PvcSource, S3Source

__all__ = [
    "AbsSource",
    "Archive",
    "BackupPolicy",
    "BackupReconciler",
    "BackupTimes",
    "EtcdBackup",
    "EtcdBackupSpec",
    "GcsSource",
    "LocalSource",
    "Manifest",
    "Place",
    "PvcSource",
    "S3Source",
    "Stores",
    "Trial",
    "tool",
]
