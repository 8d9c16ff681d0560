"""`EtcdBackup`: CoreOS' fields, a folder of the operator as one more place, and a cluster by its name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from etcd_operator.kinds import GROUP
from navarch import Column, Meta, Model, Resource, Rule, Spec, Status

__all__ = [
    "BackupPolicy",
    "EtcdBackup",
    "EtcdBackupSpec",
    "EtcdBackupStatus",
    "LocalSource",
    "Place",
    "S3Source",
]

_PATH = Meta(min_length=1, max_length=1024)


class S3Source(Model):
    """S3, or what speaks like it."""

    path: Annotated[str, _PATH, Meta(pattern="^[^/]+/.*[^/]$")]
    """The bucket, a slash, and the name of the object."""
    aws_secret: str = ""
    """A Secret with `credentials` and `config`, as the files of AWS' tools; without it, whatever the operator has."""
    endpoint: str = ""
    """Where the store is, if it is not AWS'."""
    force_path_style: bool = False


class LocalSource(Model):
    """A folder that the operator has, such as a claim that is mounted into it."""

    path: Annotated[str, _PATH, Meta(pattern="^[^/].*[^/]$")]
    """The file, below the folder that the operator was given for backups."""


class Place(Model):
    """Where a snapshot is: exactly one of these."""

    s3: S3Source | None = None
    local: LocalSource | None = None


class BackupPolicy(Model):
    """How often, and how many are kept."""

    timeout_in_second: Annotated[int, Meta(ge=0)] = 0
    """For one backup; 0 are 60 seconds."""
    backup_interval_in_second: Annotated[int, Meta(ge=0)] = 0
    """0 makes one backup."""
    max_backups: Annotated[int, Meta(ge=0)] = 0
    """How many stay; 0 keeps all. The newest good one always stays."""
    max_age_in_second: Annotated[int, Meta(ge=0)] = 0
    """Older ones go; 0 keeps all."""


class EtcdBackupSpec(
    Spec,
    Place,
    rules=(
        Rule("has(self.s3) != has(self.local)", message="expected either s3 or local"),
        Rule(
            "(has(self.clusterName) && self.clusterName != '') != "
            "(has(self.etcdEndpoints) && size(self.etcdEndpoints) > 0)",
            message="expected either clusterName or etcdEndpoints",
        ),
        Rule(
            "!has(self.storageType) || self.storageType == (has(self.s3) ? 'S3' : 'Local')",
            message="storageType is another one than the place that is given",
        ),
    ),
):
    etcd_endpoints: Annotated[list[str], Meta(max_length=32)] = []
    """Of those that answer, the one that knows most is taken."""
    cluster_name: str = ""
    """An EtcdCluster of this namespace, in the place of endpoints."""
    storage_type: Literal["S3", "Local"] | None = None
    backup_policy: BackupPolicy = BackupPolicy()


class EtcdBackupStatus(Status):
    succeeded: Annotated[bool, Column("Succeeded")] = False
    """Whether the last one that was tried counts."""
    reason: str = ""
    """Why not."""
    etcd_revision: Annotated[int, Column("Revision")] = 0
    etcd_version: str = ""
    last_success_date: Annotated[datetime | None, Column("Last", type="date")] = None
    """When the snapshot was taken that counts."""
    object: str = ""
    """Its name in the store."""
    size: int = 0
    sha256: str = ""
    kept: int = 0
    """How many good ones there are."""


class EtcdBackup(Resource[EtcdBackupSpec, EtcdBackupStatus], group=GROUP, version="v1beta2"):
    """A backup of a cluster of etcd, once or again and again."""
