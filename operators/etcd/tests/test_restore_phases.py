"""What restores do to a cluster whose pods never run: phases that somebody or something gets into the way of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from clusters import NAME, SECONDS, example, owned_by
from etcd_operator.backup import EtcdBackup
from etcd_operator.declaration import etcd_operator
from etcd_operator.destinations import LocalSource
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import member_claim
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.keeper import under_way
from etcd_operator.restore.kinds import ClusterReference, Phase
from etcd_operator.restore.lock import RESTORING, restores_ahead
from navarch import Context
from navarch.api import OwnerReference
from navarch.client import MergePatch
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.operator.crds import prepare_crds
from navarch.testing import Cluster

SEED, KEPT = f"{NAME}-0", f"{NAME}-2"


async def restoring(cluster: Cluster, phase: str, *, owned: bool = True, **status: Any) -> None:
    """A restore that has got as far as that; its first member has a claim, or somebody else one of its name."""
    await prepare_crds(cluster.client, [EtcdCluster, EtcdBackup, EtcdRestore], "install")
    made = await cluster.create(example(3, paused=True))
    await cluster.create(owned_by(made, member_claim(example(3), SEED)) if owned else member_claim(example(3), SEED))
    spec = EtcdRestoreSpec(local=LocalSource(path="some/etcd.db"), etcd_cluster=ClusterReference(name=NAME))
    await cluster.create(EtcdRestore(name="back", spec=spec))
    known = {"phase": phase, "seed": SEED, "sha256": "0", "etcdRevision": 7, "nextRevision": 1007, **status}
    await cluster.client.patch(EtcdRestore, "back", MergePatch({"status": known}), subresource="status")


async def ask(cluster: Cluster, **fields: Any) -> None:
    await cluster.client.patch(EtcdCluster, NAME, MergePatch({"spec": fields}))


async def told(cluster: Cluster) -> EtcdRestore:
    return await cluster.get(EtcdRestore, "back")


async def test_a_cluster_that_somebody_pauses_while_others_join_stays_paused(cluster: Cluster) -> None:
    """It is resumed once, and the restore says what it waits for."""
    await restoring(cluster, "Joining")
    async with cluster.run(etcd_operator()):
        await cluster.eventually(
            lambda: cluster.get(EtcdCluster, NAME), lambda found: not found.spec.paused, timeout=SECONDS
        )
        await cluster.eventually(lambda: told(cluster), lambda found: found.status.resumed, timeout=SECONDS)
        await ask(cluster, paused=True)
        await cluster.eventually(
            lambda: told(cluster), lambda found: "is paused" in found.status.reason, timeout=SECONDS
        )
        assert (await cluster.get(EtcdCluster, NAME)).spec.paused


async def test_a_first_member_that_cannot_start_is_made_anew_with_another_version(cluster: Cluster) -> None:
    """While nobody has the old one's image, and nobody need delete its pod."""
    await restoring(cluster, "Seeding")
    async with cluster.run(etcd_operator()):
        old = await seed_with(cluster, "3.5.1")
        await ask(cluster, version="3.5.2")
        assert (await seed_with(cluster, "3.5.2")).metadata.uid != old.metadata.uid


async def test_a_cluster_that_loses_everything_while_others_join_begins_with_the_snapshot_again(
    cluster: Cluster,
) -> None:
    """At a revision that nobody has seen of the first try; while there is a claim, its data is waited for."""
    await restoring(cluster, "Joining", owned=False, resumed=True)
    await ask(cluster, paused=False)
    async with cluster.run(etcd_operator()):
        await cluster.eventually(
            lambda: told(cluster), lambda found: "0 of 3" in found.status.reason, timeout=SECONDS, what="who waits"
        )
        assert not await cluster.list(Pod)
        await cluster.delete(PersistentVolumeClaim, SEED)
        again = await seed_with(cluster, "3.5.1")
        assert again.metadata.owner_references
        assert (await told(cluster)).status.next_revision > 1007
        assert (await cluster.get(EtcdCluster, NAME)).spec.paused


async def test_a_restore_waits_for_the_one_that_is_at_work(cluster: Cluster) -> None:
    """It touches nothing until then; what is deleted is waited for no more."""
    await restoring(cluster, "Seeding")
    async with cluster.run(etcd_operator()):
        pod = await seed_with(cluster, "3.5.1")
        await cluster.create(again())
        await cluster.eventually(
            lambda: cluster.get(EtcdRestore, "again"),
            lambda it: "waiting for EtcdRestore back of the same cluster" in it.status.reason,
        )
        assert (await cluster.get(Pod, pod.name)).metadata.uid == pod.metadata.uid
        await cluster.delete(EtcdRestore, "back")
        await cluster.eventually(lambda: cluster.get(EtcdRestore, "again"), lambda it: "no folder" in it.status.reason)


@pytest.mark.parametrize("phase", ["Emptying", "Seeding", "Joining"])
async def test_who_waits_for_whom(cluster: Cluster, phase: str) -> None:
    """Everybody for those that stop and start members; the operator's own restores for no members that join."""
    await restoring(cluster, phase, resumed=True)
    owner = OwnerReference(api_version="v1", kind="EtcdCluster", name=NAME, uid="1", controller=True)
    own, theirs = again(), again()
    own.metadata.owner_references = [owner]
    ctx = cast(Context, SimpleNamespace(client=cluster.client))
    for each in (own, theirs):
        each.metadata.namespace = "default"
    assert [it.name for it in await restores_ahead(theirs, ctx)] == ["back"]
    assert [it.name for it in await restores_ahead(own, ctx)] == ([] if phase == "Joining" else ["back"])


async def test_a_restore_that_was_slower_begins_again_after_the_other(cluster: Cluster) -> None:
    """Both had their snapshots: what this one copied is not what the cluster has by then."""
    await restoring(cluster, "Seeding")
    await cluster.create(again())
    await cluster.client.patch(
        EtcdRestore, "again", MergePatch({"status": {"phase": "Emptying"}}), subresource="status"
    )
    first = (await told(cluster)).metadata.uid
    await cluster.client.patch(EtcdCluster, NAME, MergePatch({"metadata": {"annotations": {RESTORING: first}}}))
    async with cluster.run(etcd_operator()):
        await cluster.eventually(
            lambda: cluster.get(EtcdRestore, "again"),
            lambda it: not it.status.phase and "waiting for EtcdRestore back of the same cluster" in it.status.reason,
        )
        assert (await cluster.get(EtcdCluster, NAME)).annotations[RESTORING] == first


async def test_what_somebody_has_kept_of_an_earlier_cluster_is_not_touched(cluster: Cluster) -> None:
    """A claim with the labels of the cluster that is not its own: nothing begins before it is gone, which is said."""
    await restoring(cluster, "")
    await cluster.create(member_claim(example(3), KEPT))
    async with cluster.run(etcd_operator()):
        await cluster.eventually(lambda: told(cluster), lambda it: KEPT in it.status.reason)
        await cluster.delete(PersistentVolumeClaim, KEPT)
        await cluster.eventually(lambda: told(cluster), lambda it: "no folder" in it.status.reason)


async def test_a_restore_whose_cluster_another_one_took_is_over(cluster: Cluster) -> None:
    """A superseded restore ends without success."""
    await restoring(cluster, "Joining", resumed=True)
    await cluster.client.patch(EtcdCluster, NAME, MergePatch({"metadata": {"annotations": {RESTORING: "another"}}}))
    async with cluster.run(etcd_operator()):
        over = await cluster.eventually(lambda: told(cluster), lambda it: it.status.phase == "Done")
    assert not over.status.succeeded
    assert "another restore" in over.status.reason


def again() -> EtcdRestore:
    """A second one into the same cluster."""
    spec = EtcdRestoreSpec(local=LocalSource(path="other/etcd.db"), etcd_cluster=ClusterReference(name=NAME))
    return EtcdRestore(name="again", spec=spec)


def test_a_restore_whose_cluster_has_formed_is_not_waited_for() -> None:
    """If that one loses its data again while others join, the next restore need not wait for it; before, it is the one."""
    restore = EtcdRestore(name="back", spec=EtcdRestoreSpec(etcd_cluster=ClusterReference(name=NAME)))
    awaited: dict[Phase, bool] = {"": True, "Seeding": True, "Joining": False, "Done": False}
    for phase, waits in awaited.items():
        restore.status.phase = phase
        assert bool(under_way([restore], formed=True)) == waits
    restore.status.phase = "Joining"
    assert under_way([restore], formed=False)


async def seed_with(cluster: Cluster, version: str) -> Pod:
    """The first member's pod, once it has that version."""

    async def found() -> list[Pod]:
        return [pod for pod in await cluster.list(Pod) if pod.annotations.get("etcd.version") == version]

    return (await cluster.eventually(found, bool, timeout=SECONDS, what=f"a first member with {version}"))[0]
