"""Restores of one cluster, one after the other: two at once would each stop what the other one has begun."""

from __future__ import annotations

from typing import Final

from etcd_operator.destinations import object_of
from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.restore.kinds import EtcdRestore
from navarch import Context
from navarch.client import MergePatch

RESTORING: Final = f"{GROUP}/restoring"
"""On a cluster: the uid of the restore that it was given to last."""


async def restores_ahead(restore: EtcdRestore, ctx: Context) -> list[EtcdRestore]:
    """Other restores that are at work on the same cluster, and that this one has to wait for."""
    others = await ctx.client.list(EtcdRestore, namespace=restore.namespace)
    same = [each for each in others if each.spec.etcd_cluster == restore.spec.etcd_cluster]
    return [each for each in same if each.metadata.uid != restore.metadata.uid and _goes_first(each, restore)]


def _goes_first(other: EtcdRestore, restore: EtcdRestore) -> bool:
    """While it stops or starts members, or others join. The operator itself restores where the quorum is lost: nothing comes
    of joining then.
    """
    joins = other.status.phase == "Joining" and not (other.status.resumed and restore.metadata.owner_references)
    return joins or other.status.phase in {"Emptying", "Seeding"}


async def acquire(cluster: EtcdCluster, restore: EtcdRestore, ctx: Context) -> bool:
    """Whether the cluster is given to this restore, now or before. Of two that ask at once one is told `Conflict`.

    One that starts members was given it, also if somebody has taken the note of that away.
    """
    own = restore.metadata.uid
    holder = cluster.annotations.get(RESTORING)
    if holder == own:
        return True
    if any(
        each.metadata.uid == holder or each.status.phase != "Emptying" for each in await restores_ahead(restore, ctx)
    ):
        return False
    metadata = {"resourceVersion": cluster.metadata.resource_version, "annotations": {RESTORING: own}}
    await ctx.client.patch(EtcdCluster, cluster.name, MergePatch({"metadata": metadata}), namespace=cluster.namespace)
    return True


async def snapshots_in_use(namespace: str, ctx: Context) -> frozenset[str]:
    """The names of snapshots that restores of a namespace have not done with: each is fetched when the restore begins, and
    once more when the members are stopped.
    """
    restores = await ctx.client.list(EtcdRestore, namespace=namespace)
    return frozenset(object_of(each.spec) for each in restores if each.status.phase != "Done")


def is_superseded(cluster: EtcdCluster, restore: EtcdRestore) -> bool:
    """Whether the cluster was given to another restore since."""
    return cluster.annotations.get(RESTORING, restore.metadata.uid) != restore.metadata.uid
