"""What is asked of those who keep a cluster's backups. A model of them is another `Keeper`."""

from __future__ import annotations

from typing import Protocol

from etcd_operator.kept import Kept, Origin
from etcd_operator.kinds import EtcdCluster
from navarch import Context

__all__ = ["Keeper"]


class Keeper(Protocol):
    """Backups and restores of clusters. Each write can be made twice."""

    async def seen(self, cluster: EtcdCluster, ctx: Context) -> Kept:
        """What there is."""
        ...

    async def keep(self, cluster: EtcdCluster, ctx: Context) -> None:
        """Brings about the backups that the spec asks for again and again."""
        ...

    async def back_up(self, cluster: EtcdCluster, ctx: Context) -> None:
        """Asks for the snapshot before an upgrade."""
        ...

    async def restore(self, cluster: EtcdCluster, ctx: Context, origin: Origin, *, safely: bool) -> None:
        """Asks for a snapshot to take the place of what the cluster has; `safely` only after a copy was made of that."""
        ...
