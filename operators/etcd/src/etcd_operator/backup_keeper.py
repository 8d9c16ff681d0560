"""`BackupState`: the observed backups and restores of a cluster. `BackupKeeper`: the interface that manages them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from etcd_operator.kinds import EtcdCluster
from navarch import Context

SnapshotOrigin = Literal["newest", "given"]
"""The snapshot to restore: the newest verified one, or the one of spec.restoreFrom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """Scheduled backups, the snapshot before an upgrade, and a running restore.

    `saved` names the snapshot before the upgrade to the current spec; until it exists, `saving` tells its progress. Both
    are empty if none was requested.
    """

    scheduled: tuple[bool, str, str] | None = None
    """Status, reason and message of the scheduled backups; None if there are none."""
    newest: str = ""
    """Describes the newest verified snapshot."""
    can_save: bool = False
    """True if a destination for the snapshot before an upgrade exists."""
    saving: str = ""
    saved: str = ""
    restoring: str = ""
    """The message of the running restore; empty if there is none."""
    emptying: bool = False
    """True if a restore stops or has stopped the members, and no member has the snapshot yet."""
    begun_from: bool = False
    """True if a member has started from the snapshot of spec.restoreFrom."""
    was_restored: bool = False
    """True if the cluster carries the annotation of a restore; that restore may be deleted."""


class BackupKeeper(Protocol):
    """Manages the backups and restores of clusters. Every write is idempotent."""

    async def seen(self, cluster: EtcdCluster, ctx: Context) -> BackupState:
        """Returns the observed state."""
        ...

    async def keep(self, cluster: EtcdCluster, ctx: Context) -> None:
        """Applies the scheduled EtcdBackup of the spec, or deletes it."""
        ...

    async def back_up(self, cluster: EtcdCluster, ctx: Context) -> None:
        """Requests the snapshot before an upgrade."""
        ...

    async def restore(self, cluster: EtcdCluster, ctx: Context, origin: SnapshotOrigin, *, safely: bool) -> None:
        """Requests a restore of the cluster; `safely` requires a safety copy of its data first."""
        ...
