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
from workload import workload

pytestmark = pytest.mark.cluster(nodes=3)


async def test_a_cluster_forms_and_heals(cluster: Cluster) -> None:
    """Three members from a seed; a pod that is deleted is the same member again, one without its disk is replaced."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            before = await cluster.get(Pod, f"{NAME}-0")
            kept = await claims(cluster)
            await cluster.client.delete(Pod, f"{NAME}-0", grace_seconds=0)
            await cluster.eventually(
                lambda: cluster.get(Pod, f"{NAME}-0"),
                lambda pod: pod.metadata.uid != before.metadata.uid,
                timeout=SECONDS,
            )
            await serves(cluster, 3)
            assert await claims(cluster) == kept

            lost = await cluster.get(PersistentVolumeClaim, f"{NAME}-1")
            await cluster.delete(PersistentVolumeClaim, f"{NAME}-1")
            await cluster.client.delete(Pod, f"{NAME}-1", grace_seconds=0)
            await cluster.eventually(
                lambda: claims(cluster),
                lambda found: lost.metadata.uid not in found and len(found) == 3,
                timeout=SECONDS,
            )
            await serves(cluster, 3)
        assert work.longest_gap < 10.0


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


async def test_a_leader_that_hangs_costs_an_election_and_no_write(cluster: Cluster) -> None:
    """The others go on without it; when it goes on, it is one of them again."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        found = await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            with frozen(processes_of(await cluster.get(Pod, found.status.leader))):
                await cluster.eventually(
                    lambda: cluster.get(EtcdCluster, NAME),
                    lambda now: now.status.leader not in {"", found.status.leader},
                    timeout=SECONDS,
                    what="another leader",
                )
                written = len(work.acknowledged)
                await cluster.eventually(
                    lambda: cluster.get(EtcdCluster, NAME),
                    lambda _: len(work.acknowledged) > written + 10,
                    timeout=SECONDS,
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
