"""Snapshots become clusters again, with real members; and restores that must not touch anything."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clusters import NAME, SECONDS, serves
from clusters import of_this_user as example
from etcd_operator.backup import EtcdBackup, EtcdBackupSpec, LocalSource
from etcd_operator.backup.snapshots import check
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import AuthPolicy, EtcdCluster, IssuedTls, TlsPolicy
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference, EtcdRestoreStatus
from etcds import built_etcd, machines
from navarch.client import Watch
from navarch.errors import EtcdCompactedError
from navarch.etcd import WatchRequest
from navarch.k8s.core.v1 import Pod
from navarch.testing import Cluster
from object_store import object_store, s3, secret
from rig import programs
from workload import client_of, get, put

PLACE = LocalSource(path="some/etcd.db")
PHASES = ("Emptying", "Seeding", "Joining", "Done")


def restore(**place: Any) -> EtcdRestore:
    spec = EtcdRestoreSpec(**(place or {"local": PLACE}), etcd_cluster=ClusterReference(name=NAME))
    return EtcdRestore(name="back", spec=spec)


async def backed_up(cluster: Cluster, **place: Any) -> EtcdBackup:
    spec = EtcdBackupSpec(cluster_name=NAME, **(place or {"local": PLACE}))
    await cluster.apply(EtcdBackup(name="once", spec=spec))
    return await cluster.eventually(
        lambda: cluster.get(EtcdBackup, "once"), lambda found: found.status.succeeded, timeout=SECONDS
    )


async def status_of(cluster: Cluster) -> EtcdRestoreStatus:
    return (await cluster.get(EtcdRestore, "back")).status


async def restored(cluster: Cluster) -> EtcdRestoreStatus:
    return await cluster.eventually(
        lambda: status_of(cluster), lambda status: status.succeeded, timeout=SECONDS, what="a restore that is done"
    )


async def reached(cluster: Cluster, phase: str) -> None:
    beyond = PHASES[PHASES.index(phase) :]
    await cluster.eventually(
        lambda: status_of(cluster), lambda status: status.phase in beyond, timeout=SECONDS, what=f"the phase {phase}"
    )


async def refused(cluster: Cluster, message: str) -> None:
    await cluster.eventually(
        lambda: status_of(cluster),
        lambda status: message in status.reason,
        timeout=SECONDS,
        what=f"a restore that waits: {message}",
    )


@pytest.mark.cluster(nodes=3)
@pytest.mark.long
async def test_a_cluster_goes_back_to_its_snapshot_and_what_it_had_is_kept(cluster: Cluster, tmp_path: Path) -> None:
    """Three members serve what was backed up; what came later is in the safety copy."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        await put(cluster, NAME, b"/a", b"first")
        await backed_up(cluster)
        later = await put(cluster, NAME, b"/a", b"second")
        await cluster.apply(restore())
        done = await restored(cluster)
        await serves(cluster, 3)
        assert await get(cluster, NAME, b"/a") == b"first"
        assert check(tmp_path / "default" / done.safety_copy).revision == later


@pytest.mark.cluster(nodes=1)
@pytest.mark.long
async def test_two_restores_at_once_take_turns(cluster: Cluster, tmp_path: Path) -> None:
    """Never are both at work, and the cluster has what the second of them brought; what the first one did is kept."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        wanted = {}
        for name in ("one", "two"):
            await put(cluster, NAME, b"/a", name.encode())
            place = LocalSource(path=f"{name}/etcd.db")
            await backed_up(cluster, local=place)
            spec = EtcdRestoreSpec(local=place, etcd_cluster=ClusterReference(name=NAME))
            wanted[name] = EtcdRestore(name=name, spec=spec)
            await cluster.delete(EtcdBackup, "once")
        async with cluster.client.watch(EtcdRestore) as changes:
            for each in wanted.values():
                await cluster.apply(each)
            at_work = await seen_at_work(changes, {*wanted})
        first, second = at_work[0], at_work[-1]
        assert at_work == [first] * at_work.count(first) + [second] * at_work.count(second)
        assert {first, second} == {*wanted}
        assert await get(cluster, NAME, b"/a") == second.encode()


async def seen_at_work(changes: Watch[EtcdRestore], names: set[str]) -> list[str]:
    """Who was seen to have members started, in order, until all have succeeded."""
    at_work, left = [], {*names}
    async with asyncio.timeout(SECONDS):
        while left:
            found = (await anext(changes)).object
            at_work += [found.name] if found.status.phase in {"Seeding", "Joining"} else []
            left -= {found.name} if found.status.succeeded else set()
    return at_work


@pytest.mark.real  # too long for the fast suite
@pytest.mark.cluster(nodes=1)
async def test_a_cluster_with_tls_and_users_goes_back_to_its_snapshot(cluster: Cluster, tmp_path: Path) -> None:
    """The snapshot is taken, handed over and served with TLS, and root has the password that it had."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.apply(example(1, tls=TlsPolicy(issued=IssuedTls()), auth=AuthPolicy()))
        await serves(cluster, 1)
        await put(cluster, NAME, b"/a", b"first")
        await backed_up(cluster)
        await put(cluster, NAME, b"/a", b"second")
        await cluster.apply(restore())
        await restored(cluster)
        assert await get(cluster, NAME, b"/a") == b"first"


@pytest.mark.real  # needs an etcd that is built
async def test_whoever_watched_a_cluster_before_its_restore_hears_of_it(tmp_path: Path) -> None:
    """The revision does not go back, also not in a second restore of the same snapshot: a watch that goes on from what it
    saw is told that this is gone, where it would miss what is written under revisions that it has seen.
    """
    version = programs.ETCD_VERSION.removeprefix("v")
    built_etcd(programs.ETCD_TOOL)
    operator = etcd_operator(backups=tmp_path)
    async with machines({version: built_etcd(programs.ETCD)}) as cluster, cluster.run(operator):
        await cluster.apply(example(1, version=version))
        await serves(cluster, 1)
        await put(cluster, NAME, b"/a", b"first")
        await backed_up(cluster)
        for _ in range(2):
            seen = await put(cluster, NAME, b"/a", b"second")
            await cluster.apply(restore())
            done = await restored(cluster)
            assert await get(cluster, NAME, b"/a") == b"first"
            with pytest.raises(EtcdCompactedError):
                await watched(cluster, seen + 1)
            assert await put(cluster, NAME, b"/a", b"third") > done.next_revision > seen
            await cluster.delete(EtcdRestore, "back")


async def watched(cluster: Cluster, revision: int) -> None:
    """Ends once something is heard that was written since."""
    asked = WatchRequest(key=b"/a", start_revision=revision)
    async with asyncio.timeout(SECONDS), await client_of(cluster, NAME) as etcd, etcd.watch(asked) as answers:
        async for answer in answers:
            if answer.events:
                return


@pytest.mark.cluster(nodes=1)
async def test_a_new_cluster_begins_with_a_snapshot_from_s3(cluster: Cluster) -> None:
    """The old one is gone with its claims; the new one has its data."""
    async with object_store() as store, cluster.run(etcd_operator()):
        await cluster.create(secret())
        await cluster.apply(example(1))
        await serves(cluster, 1)
        await put(cluster, NAME, b"/a", b"first")
        await backed_up(cluster, s3=s3(store))
        await cluster.delete(EtcdCluster, NAME)
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, timeout=SECONDS)
        await cluster.apply(restore(s3=s3(store)))
        await refused(cluster, "EtcdCluster example does not exist")
        await cluster.create(example(1, paused=True))
        done = await restored(cluster)
        assert not done.safety_copy
        assert await get(cluster, NAME, b"/a") == b"first"
        assert await put(cluster, NAME, b"/b", b"new") > done.etcd_revision


@pytest.mark.cluster(nodes=1)
async def test_a_damaged_snapshot_touches_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Cut off, or not there at all: the cluster serves on, with the pod that it had."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        await put(cluster, NAME, b"/a", b"first")
        pod = await cluster.get(Pod, f"{NAME}-0")
        await cluster.apply(restore())
        await refused(cluster, "the object, bucket or folder does not exist")
        await cluster.delete(EtcdRestore, "back")
        await backed_up(cluster)
        path = tmp_path / "default" / PLACE.path
        path.write_bytes(path.read_bytes()[:-100])
        await cluster.apply(restore())
        await refused(cluster, "is truncated or changed")
        assert (await cluster.get(Pod, f"{NAME}-0")).metadata.uid == pod.metadata.uid
        assert not (await cluster.get(EtcdCluster, NAME)).spec.paused
        assert await get(cluster, NAME, b"/a") == b"first"


@pytest.mark.cluster(nodes=1)
@pytest.mark.long
async def test_a_restore_goes_on_where_the_operator_was_stopped(cluster: Cluster, tmp_path: Path) -> None:
    """In each of its phases; and one whose cluster is silent waits before the first."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        await put(cluster, NAME, b"/a", b"first")
        await backed_up(cluster)
        await put(cluster, NAME, b"/a", b"second")
        await cluster.apply(example(0))
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, timeout=SECONDS)
        await cluster.apply(restore())
        await refused(cluster, "withoutSafetyCopy")
        await cluster.apply(example(1))
    for phase in PHASES:
        async with cluster.run(etcd_operator(backups=tmp_path)):
            await reached(cluster, phase)
    assert (await status_of(cluster)).succeeded
    assert await get(cluster, NAME, b"/a") == b"first"
