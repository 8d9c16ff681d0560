"""`EtcdBackup`: CoreOS' fields, claims and a folder of the operator as more places, schedules, and a cluster by its name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from etcd_operator.destinations import ONE_DESTINATION, BackupDestination, BackupPolicy, matches_destination
from etcd_operator.kinds import GROUP
from navarch import Column, Meta, Resource, Rule, Spec, Status, field


class EtcdBackupSpec(
    Spec,
    BackupDestination,
    rules=(
        ONE_DESTINATION,
        Rule(
            "(has(self.clusterName) && self.clusterName != '') != "
            "(has(self.etcdEndpoints) && size(self.etcdEndpoints) > 0)",
            message="expected either clusterName or etcdEndpoints",
        ),
        matches_destination("storageType"),
    ),
):
    etcd_endpoints: Annotated[list[str], Meta(max_length=32)] = []
    """Of those that answer, the one that knows most is taken."""
    client_tls_secret: str = field(name="clientTLSSecret", default="")
    """For endpoints with TLS: a Secret with `etcd-client-ca.crt`, `etcd-client.crt` and `etcd-client.key`. A cluster that
    is named needs none.
    """
    cluster_name: str = ""
    """An EtcdCluster of this namespace, in the place of endpoints."""
    storage_type: Literal["S3", "GCS", "ABS", "PVC", "Local"] | None = None
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
    path: str = ""
    """The path that the spec had when it was taken."""
    size: int = 0
    sha256: str = ""
    verified: str = ""
    """`restored` if etcd's own tool has made data of it; `structure` if its checksum and its pages were read."""
    kept: int = 0
    """How many good ones there are."""


class EtcdBackup(Resource[EtcdBackupSpec, EtcdBackupStatus], group=GROUP, version="v1beta2"):
    """A backup of a cluster of etcd, once or again and again."""
