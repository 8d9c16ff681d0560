"""The operator with real etcd processes, while somebody writes and reads."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusters import NAME, SECONDS, claims, example, processes_of, serves
from etcd_operator.kinds import EtcdCluster, EtcdSettings
from etcd_operator.operator import etcd_operator
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.testing import Cluster
from workload import Workload, workload

pytestmark = pytest.mark.cluster(nodes=3)


async def test_a_cluster_forms_and_heals(cluster: Cluster) -> None:
    """Three members from a seed; a deleted pod is the same member again, a lost disk is replaced, a leader may hang."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            await a_pod_comes_back(cluster, f"{NAME}-0")
            await a_lost_disk_is_replaced(cluster, f"{NAME}-1")
            await a_leader_that_hangs_is_done_without(cluster, work)


async def test_a_cluster_grows_changes_and_sleeps(cluster: Cluster) -> None:
    """1 to 3 members, other pods for all of them one by one, back to 1, to none, and back with the data."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        async with workload(cluster, NAME) as work:
            await cluster.apply(example(3))
            await serves(cluster, 3)
            changed = example(3, options=EtcdSettings(snapshot_count=5000))
            await cluster.apply(changed)
            await cluster.eventually(
                lambda: cluster.list(Pod),
                lambda pods: all("--snapshot-count=5000" in (pod.spec.containers[0].command or []) for pod in pods),
                timeout=SECONDS,
            )
            await serves(cluster, 3)
            await cluster.apply(example(1, options=EtcdSettings(snapshot_count=5000)))
            await serves(cluster, 1)
            await cluster.eventually(lambda: claims(cluster), lambda found: len(found) == 1, timeout=SECONDS)
        await cluster.apply(example(0, options=EtcdSettings(snapshot_count=5000)))
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, timeout=SECONDS)
        await cluster.apply(example(1, options=EtcdSettings(snapshot_count=5000)))
        await serves(cluster, 1)
        await work.verify()


async def a_pod_comes_back(cluster: Cluster, name: str) -> None:
    """As the same member, with its claim."""
    before, kept = await cluster.get(Pod, name), await claims(cluster)
    await cluster.client.delete(Pod, name, grace_seconds=0)
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
            if Path(f"/proc/{process}").exists():
                os.kill(process, signal.SIGCONT)
