"""`EtcdBackup`: CoreOS' fields, and more: claims and a local folder as destinations, schedules, and clusterName."""

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
    """The operator takes the snapshot from the endpoint with the highest revision."""
    client_tls_secret: str = field(name="clientTLSSecret", default="")
    """For endpoints with TLS: a Secret with `etcd-client-ca.crt`, `etcd-client.crt` and `etcd-client.key`. `clusterName`
    needs none.
    """
    cluster_name: str = ""
    """An EtcdCluster of this namespace, instead of endpoints."""
    storage_type: Literal["S3", "GCS", "ABS", "PVC", "Local"] | None = None
    backup_policy: BackupPolicy = BackupPolicy()


class EtcdBackupStatus(Status):
    succeeded: Annotated[bool, Column("Succeeded")] = False
    """True if the last backup succeeded."""
    reason: str = ""
    """Why the last backup failed, or what it waits for."""
    etcd_revision: Annotated[int, Column("Revision")] = 0
    etcd_version: str = ""
    last_success_date: Annotated[datetime | None, Column("Last", type="date")] = None
    """When the last successful snapshot was taken."""
    object: str = ""
    """The name of that snapshot in the store."""
    path: str = ""
    """The path of the spec when it was taken."""
    size: int = 0
    sha256: str = ""
    verified: str = ""
    """`restored` if etcdutl has restored it; `structure` if its checksum and pages were read."""
    kept: int = 0
    """The number of snapshots that retention kept."""


class EtcdBackup(Resource[EtcdBackupSpec, EtcdBackupStatus], group=GROUP, version="v1beta2"):
    """A backup of an etcd cluster, once or on a schedule."""
