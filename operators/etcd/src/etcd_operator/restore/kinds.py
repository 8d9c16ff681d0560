"""`EtcdRestore`: CoreOS' fields, and where the restore has got to."""

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
        Rule("self == oldSelf", message="a restore cannot be changed: make another one"),
    ),
):
    backup_storage_type: Literal["S3", "GCS", "ABS", "PVC", "Local"] | None = None
    etcd_cluster: ClusterReference
    """An EtcdCluster of this namespace. Create it with `paused: true` to start it from the snapshot."""
    without_safety_copy: bool = False
    """Goes on where no member of the cluster answers, so that nothing can be copied of what it has."""


class EtcdRestoreStatus(Status):
    succeeded: Annotated[bool, Column("Succeeded")] = False
    reason: str = ""
    """What it waits for, or why it does not go on."""
    phase: Annotated[Phase, Column("Phase")] = ""
    """Empty while nothing of the cluster was touched."""
    sha256: str = ""
    """The snapshot that was fetched and checked."""
    etcd_revision: Annotated[int, Column("Revision")] = 0
    next_revision: int = 0
    """The cluster goes on from here: higher than it has ever been, and nothing older can be watched any more. Only etcd
    3.5.10 and later can; others go on from `etcdRevision`.
    """
    safety_copy: str = ""
    """Where the data is that the cluster had before, in the same store."""
    seed: str = ""
    """The member that the others learn from."""
    resumed: bool = False
    """The cluster goes on from it. Whoever pauses it after that has his reasons."""


class EtcdRestore(Resource[EtcdRestoreSpec, EtcdRestoreStatus], group=GROUP, version="v1beta2"):
    """Brings a cluster of etcd to what a snapshot has."""
