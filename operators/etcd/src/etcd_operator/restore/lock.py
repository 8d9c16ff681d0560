"""Serialises the restores of one cluster, with an annotation on it that names the active restore."""

from __future__ import annotations

from typing import Final

from etcd_operator.destinations import object_of
from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.restore.kinds import EtcdRestore
from navarch import Context
from navarch.client import MergePatch

RESTORING: Final = f"{GROUP}/restoring"
"""The annotation of a cluster with the uid of its last active restore."""


async def restores_ahead(restore: EtcdRestore, ctx: Context) -> list[EtcdRestore]:
    """Returns the running restores of the same cluster that this one has to wait for."""
    others = await ctx.client.list(EtcdRestore, namespace=restore.namespace)
    same = [each for each in others if each.spec.etcd_cluster == restore.spec.etcd_cluster]
    return [each for each in same if each.metadata.uid != restore.metadata.uid and _goes_first(each, restore)]


def _goes_first(other: EtcdRestore, restore: EtcdRestore) -> bool:
    """Reports whether the other restore is stopping, seeding or joining members.

    A recovery that the operator created does not wait for a joining one: without a quorum no member can join.
    """
    joins = other.status.phase == "Joining" and not (other.status.resumed and restore.metadata.owner_references)
    return joins or other.status.phase in {"Emptying", "Seeding"}


async def acquire(cluster: EtcdCluster, restore: EtcdRestore, ctx: Context) -> bool:
    """Acquires the cluster for this restore; returns False if another one holds it. Raises `Conflict` on a race.

    A restore that already starts members holds the cluster even if somebody removed the annotation.
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
    """Returns the snapshots that unfinished restores of a namespace need: each restore downloads its snapshot twice."""
    restores = await ctx.client.list(EtcdRestore, namespace=namespace)
    return frozenset(object_of(each.spec) for each in restores if each.status.phase != "Done")


def is_superseded(cluster: EtcdCluster, restore: EtcdRestore) -> bool:
    """Reports whether another restore has acquired the cluster since."""
    return cluster.annotations.get(RESTORING, restore.metadata.uid) != restore.metadata.uid
