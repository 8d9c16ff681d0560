"""The operator with real etcd processes, while somebody writes and reads."""

from __future__ import annotations

import pytest

from etcd_operator.kinds import EtcdCluster, EtcdClusterSpec, Storage
from etcd_operator.operator import etcd_operator
from navarch.api import Quantity
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.testing import Cluster
from workload import workload

NAME = "example"
SECONDS = 60.0


def example(size: int, **fields: object) -> EtcdCluster:
    spec = EtcdClusterSpec(size=size, version="3.5.1", storage=Storage(size=Quantity("1Gi")))
    for field, value in fields.items():
        setattr(spec, field, value)
    return EtcdCluster(name=NAME, spec=spec)


async def serves(cluster: Cluster, size: int) -> EtcdCluster:
    """The cluster, once it has that many members, all ready, and nothing is left to do."""
    return await cluster.eventually(
        lambda: cluster.get(EtcdCluster, NAME),
        lambda found: len(found.status.members.ready) == size == found.status.size and not _is_busy(found),
        timeout=SECONDS,
        what=f"{size} members that serve",
    )


def _is_busy(cluster: EtcdCluster) -> bool:
    return cluster.status.is_true("Progressing") or cluster.status.is_true("Degraded")


@pytest.mark.cluster(nodes=3)
async def test_a_cluster_forms_and_a_deleted_pod_comes_back_as_the_same_member(cluster: Cluster) -> None:
    """Three members from a seed; a pod that is deleted finds its data again; nothing that was written is lost."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            before = await cluster.get(Pod, f"{NAME}-0")
            await cluster.client.delete(Pod, f"{NAME}-0", grace_seconds=0)
            await cluster.eventually(
                lambda: cluster.get(Pod, f"{NAME}-0"),
                lambda pod: pod.metadata.uid != before.metadata.uid,
                timeout=SECONDS,
            )
            await serves(cluster, 3)
        assert work.longest_gap < 5.0


@pytest.mark.cluster(nodes=3)
async def test_a_member_that_loses_its_disk_is_replaced(cluster: Cluster) -> None:
    """Another member takes the place of the one whose claim is gone, and votes."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME):
            lost = await cluster.get(PersistentVolumeClaim, f"{NAME}-1")
            await cluster.delete(PersistentVolumeClaim, f"{NAME}-1")
            await cluster.client.delete(Pod, f"{NAME}-1", grace_seconds=0)
            await cluster.eventually(
                lambda: _claims(cluster),
                lambda found: lost.metadata.uid not in found and len(found) == 3,
                timeout=SECONDS,
            )
            await serves(cluster, 3)


@pytest.mark.cluster(nodes=3)
async def test_a_cluster_grows_and_shrinks(cluster: Cluster) -> None:
    """1 to 3 to 1 members while somebody writes; the pods and claims of those that went are gone."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        async with workload(cluster, NAME):
            await cluster.apply(example(3))
            await serves(cluster, 3)
            await cluster.apply(example(1))
            await serves(cluster, 1)
            await cluster.eventually(lambda: _claims(cluster), lambda found: len(found) == 1, timeout=SECONDS)


async def _claims(cluster: Cluster) -> set[str]:
    return {str(claim.metadata.uid) for claim in await cluster.list(PersistentVolumeClaim)}
