"""`EtcdRestore`: CoreOS' fields, and the phase of the restore."""

from __future__ import annotations

from typing import Annotated, Literal

from etcd_operator.destinations import ONE_DESTINATION, BackupDestination, matches_destination
from etcd_operator.kinds import GROUP
from navarch import Column, Meta, Model, Resource, Rule, Spec, Status

Phase = Literal["", "Emptying", "Seeding", "Joining", "Done"]


class ClusterReference(Model):
    """The cluster whose data is replaced."""

    name: Annotated[str, Meta(min_length=1)]


class EtcdRestoreSpec(
    Spec,
    BackupDestination,
    rules=(
        ONE_DESTINATION,
        matches_destination("backupStorageType"),
        Rule("self == oldSelf", message="a restore is immutable: create another one"),
    ),
):
    backup_storage_type: Literal["S3", "GCS", "ABS", "PVC", "Local"] | None = None
    etcd_cluster: ClusterReference
    """An EtcdCluster of this namespace. Create it with `paused: true` to start it from the snapshot."""
    without_safety_copy: bool = False
    """Restores without a safety copy if no member of the cluster answers."""


class EtcdRestoreStatus(Status):
    succeeded: Annotated[bool, Column("Succeeded")] = False
    reason: str = ""
    """The current wait, or the cause of a failure."""
    phase: Annotated[Phase, Column("Phase")] = ""
    """Empty until the restore changes the cluster."""
    sha256: str = ""
    """The hash of the verified snapshot."""
    etcd_revision: Annotated[int, Column("Revision")] = 0
    next_revision: int = 0
    """The cluster continues from this revision, which is higher than any before; older ones count as compacted. etcd before
    3.5.10 continues from `etcdRevision`.
    """
    safety_copy: str = ""
    """The object with the cluster's data before the restore, in the same store."""
    seed: str = ""
    """The first member, which starts from the snapshot."""
    resumed: bool = False
    """True if the restore has resumed the cluster; it does not resume it again if somebody pauses it."""


class EtcdRestore(Resource[EtcdRestoreSpec, EtcdRestoreStatus], group=GROUP, version="v1beta2"):
    """Restores an etcd cluster from a snapshot."""
