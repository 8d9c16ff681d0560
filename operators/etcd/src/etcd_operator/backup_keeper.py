"""What is asked of those who keep a cluster's backups. A model of them is another `BackupKeeper`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from etcd_operator.kinds import EtcdCluster
from navarch import Context

SnapshotOrigin = Literal["newest", "given"]
"""Which snapshot a cluster goes back to: the newest that counts, or the one that its spec says it starts from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """Backups that were asked for, the snapshot before an upgrade, and a restore that is under way.

    `saved` names the snapshot that counts for the spec as it is now; until there is one, `saving` says why not, and both
    are empty if none was asked for.
    """

    scheduled: tuple[bool, str, str] | None = None
    """Whether backups that come by schedule are well, the reason and the words; None if there are none."""
    newest: str = ""
    """The newest snapshot that counts, in words."""
    can_save: bool = False
    """Whether there is a place for a snapshot before an upgrade."""
    saving: str = ""
    saved: str = ""
    restoring: str = ""
    """What the restore says that is under way; empty if there is none."""
    emptying: bool = False
    """Whether a restore has stopped the members, or is about to, and none has the snapshot yet."""
    begun_from: bool = False
    """Whether a member has begun with the snapshot that the spec says the cluster starts from."""
    was_restored: bool = False
    """Whether the cluster is marked as given to a restore, which may be gone. A manifest of an earlier one may say so too."""


class BackupKeeper(Protocol):
    """Backups and restores of clusters. Each write can be made twice."""

    async def seen(self, cluster: EtcdCluster, ctx: Context) -> BackupState:
        """What there is."""
        ...

    async def keep(self, cluster: EtcdCluster, ctx: Context) -> None:
        """Brings about the backups that the spec asks for again and again."""
        ...

    async def back_up(self, cluster: EtcdCluster, ctx: Context) -> None:
        """Asks for the snapshot before an upgrade."""
        ...

    async def restore(self, cluster: EtcdCluster, ctx: Context, origin: SnapshotOrigin, *, safely: bool) -> None:
        """Asks for a snapshot to take the place of what the cluster has; `safely` only after a copy was made of that."""
        ...
