"""The operator with real etcd processes, while somebody writes and reads."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from clusters import NAME, SECONDS, claims, example, processes_of, serves
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import EtcdCluster, Healing
from etcds import machines, older_etcd
from navarch.etcd import EtcdClient, EtcdOptions, RangeRequest
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.testing import Cluster
from workload import Workload, endpoints_of, workload

pytestmark = pytest.mark.cluster(nodes=3)
TRUTH, LIE = b"the same on all of them", b"but not on this member!"


@pytest.mark.long
async def test_a_cluster_forms_and_heals(cluster: Cluster) -> None:
    """Three members from a seed; a deleted pod is the same member again, a lost disk is replaced, a leader may hang."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            await a_pod_comes_back(cluster, f"{NAME}-0")
            await a_lost_disk_is_replaced(cluster, f"{NAME}-1")
            await a_leader_that_hangs_is_done_without(cluster, work)
            await a_member_with_other_data_is_replaced(cluster, f"{NAME}-0")


@pytest.mark.long
async def test_a_cluster_grows_by_voters_is_upgraded_and_sleeps(tmp_path: Path) -> None:
    """1 to 3 members without learners, from one of PyPI's etcds to the next, back to 1, to none, and back with the data."""
    async with machines({"3.5.0": older_etcd(tmp_path)}) as cluster, cluster.run(etcd_operator()):
        await cluster.apply(example(1, version="3.5.0", learners=False))
        await serves(cluster, 1)
        async with workload(cluster, NAME) as work:
            await cluster.apply(example(3, version="3.5.0", learners=False))
            await serves(cluster, 3)
            await cluster.apply(example(3, learners=False))
            upgraded = await serves(cluster, 3)
            assert upgraded.status.current_version == "3.5.1"
            await cluster.apply(example(1))
            await serves(cluster, 1)
            await cluster.eventually(lambda: claims(cluster), lambda found: len(found) == 1, timeout=SECONDS)
        await cluster.apply(example(0))
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, timeout=SECONDS)
        await cluster.apply(example(1))
        await serves(cluster, 1)
        await work.verify()


async def a_pod_comes_back(cluster: Cluster, name: str) -> None:
    """As the same member, with its claim. It is not killed: this etcd may forget then what it has acknowledged."""
    before, kept = await cluster.get(Pod, name), await claims(cluster)
    await cluster.delete(Pod, name)
    await cluster.eventually(
        lambda: cluster.get(Pod, name), lambda pod: pod.metadata.uid != before.metadata.uid, timeout=SECONDS
    )
    await serves(cluster, 3)
    assert await claims(cluster) == kept


async def a_lost_disk_is_replaced(cluster: Cluster, name: str) -> None:
    """By a member with a claim of its own."""
    lost = await cluster.get(PersistentVolumeClaim, name)
    await cluster.delete(PersistentVolumeClaim, name)
    await cluster.client.delete(Pod, name, grace_seconds=0)
    await cluster.eventually(
        lambda: claims(cluster), lambda found: lost.metadata.uid not in found and len(found) == 3, timeout=SECONDS
    )
    await serves(cluster, 3)


async def a_leader_that_hangs_is_done_without(cluster: Cluster, work: Workload) -> None:
    """The others elect another and go on writing; when it goes on, it is one of them again."""
    found = await serves(cluster, 3)
    with frozen(processes_of(await cluster.get(Pod, found.status.leader))):
        await cluster.eventually(
            lambda: cluster.get(EtcdCluster, NAME),
            lambda now: now.status.leader not in {"", found.status.leader},
            timeout=SECONDS,
            what="another leader",
        )
        written = len(work.acknowledged)
        await cluster.eventually(
            lambda: cluster.get(EtcdCluster, NAME), lambda _: len(work.acknowledged) > written + 10, timeout=SECONDS
        )
    await serves(cluster, 3)


async def a_member_with_other_data_is_replaced(cluster: Cluster, name: str) -> None:
    """Bytes of its database change behind its back: it serves on, and only the comparison with the others shows it."""
    pod, before = await cluster.get(Pod, name), await claims(cluster)
    where = f"http://{pod.status.pod_ip}:2379"
    async with EtcdClient(EtcdOptions(endpoints=(where,))) as etcd:
        await etcd.kv.put(b"/truth", TRUTH)
        for process in processes_of(pod):
            await is_lied_to(etcd, where, Path(f"/proc/{process}/root/var/etcd/data/member/snap/db"))
    await cluster.apply(example(3, healing=Healing(compare_every_seconds=1)))
    await cluster.eventually(
        lambda: claims(cluster), lambda found: len(found - before) == 1 and len(found) == 3, timeout=SECONDS
    )
    await serves(cluster, 3)
    for endpoint in await endpoints_of(cluster, NAME):
        async with EtcdClient(EtcdOptions(endpoints=(endpoint,))) as etcd:
            kept = await etcd.kv.range(RangeRequest(key=b"/truth", serializable=True))
            assert [each.value for each in kept.kvs] == [TRUTH]


async def is_lied_to(etcd: EtcdClient, where: str, database: Path) -> None:
    """Until no truth is left: pages that etcd was just writing bring it back."""
    await etcd.maintenance.hash_kv(where)  # now it is on the disk
    assert rewritten(database, TRUTH, LIE), f"expected {TRUTH!r} in the database"
    again = True
    while again:
        await etcd.maintenance.hash_kv(where)
        again = rewritten(database, TRUTH, LIE)


def rewritten(database: Path, old: bytes, new: bytes) -> bool:
    """Whether there was something to be rewritten: in the same places, where etcd reads from its map of the file."""
    places = [found.start() for found in re.finditer(re.escape(old), database.read_bytes())]
    with database.open("r+b") as file:
        for place in places:
            file.seek(place)
            file.write(new)
    return bool(places)


@contextmanager
def frozen(processes: list[int]) -> Iterator[None]:
    """Stopped while the block lasts."""
    assert processes, "expected etcd to run"
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):  # it was started anew meanwhile
                os.kill(process, signal.SIGCONT)
