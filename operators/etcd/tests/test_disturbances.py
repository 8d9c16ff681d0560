"""What others do to a cluster of etcd while somebody writes: to its objects, its nodes, its spec and its operator."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from clusters import NAME, SECONDS, example, processes_of, serves
from deployed import with_rights
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import EtcdCluster, Healing
from etcds import machines
from navarch._base.clock import SystemClock
from navarch.client import MergePatch
from navarch.cluster.embedded.cluster import ADMIN
from navarch.cluster.embedded.components import POWER, POWER_OFF
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Namespace, Node, Pod, Service
from navarch.k8s.policy.v1 import PodDisruptionBudget
from navarch.testing import Cluster
from rig import programs
from workload import is_ready, workload

pytestmark = [pytest.mark.real, pytest.mark.cluster(nodes=3), pytest.mark.timeout(600)]
KILLS = 4


async def test_what_is_deleted_or_edited_by_hand_is_put_right() -> None:
    """Services, the budget, a pod's labels; and its spec ten times a second, all the time.

    A pod is killed too, after which the etcd of PyPI may have forgotten writes: this one does not.
    """
    newest = programs.ETCD_VERSION.removeprefix("v")
    async with machines({newest: programs.ETCD.path}) as made, (cluster := with_rights(made)).run(etcd_operator()):
        await cluster.apply(example(3, version=newest))
        await serves(cluster, 3)
        async with workload(cluster, NAME), edited_all_the_time(cluster):
            await comes_back(cluster, Service)
            await comes_back(cluster, PodDisruptionBudget)
            edited = {"ports": [{"name": "client", "port": 1}], "selector": {"app": "other"}}
            await cluster.client.patch(Service, f"{NAME}-client", MergePatch({"spec": edited}))
            other = {"minAvailable": None, "maxUnavailable": 3}
            await cluster.client.patch(PodDisruptionBudget, NAME, MergePatch({"spec": other}))
            await cluster.eventually(
                lambda: cluster.get(Service, f"{NAME}-client"),
                lambda found: (
                    [each.port for each in found.spec.ports or ()] == [2379]
                    and found.spec.selector == {"app": "etcd", "etcd_cluster": NAME}
                ),
                timeout=SECONDS,
            )
            await cluster.eventually(
                lambda: cluster.get(PodDisruptionBudget, NAME),
                lambda found: found.spec.min_available and found.spec.max_unavailable is None,
                timeout=SECONDS,
            )
            with suppress(NotFound):  # the operator may just have deleted it
                await cluster.client.delete(Pod, f"{NAME}-2", grace_seconds=0)
        await cluster.apply(example(3, version=newest), force=True)
        await serves(cluster, 3)


async def comes_back(cluster: Cluster, kind: type[Service | PodDisruptionBudget]) -> None:
    """After somebody has deleted it."""
    before = (await cluster.get(kind, NAME)).metadata.uid
    await cluster.delete(kind, NAME)
    await cluster.eventually(
        lambda: cluster.get(kind, NAME), lambda found: found.metadata.uid != before, timeout=SECONDS
    )


@asynccontextmanager
async def edited_all_the_time(cluster: Cluster) -> AsyncIterator[None]:
    """Somebody changes sizes and settings ten times a second, and takes them back in the end."""

    async def edit() -> None:
        number = 0
        while True:
            number += 1
            spec = {"size": (3, 4, 5)[number % 3], "options": {"snapshotCount": 5000 + number % 2}}
            await cluster.client.patch(EtcdCluster, NAME, MergePatch({"spec": spec}))
            await SystemClock().sleep(0.1)

    async with asyncio.TaskGroup() as group:
        editing = group.create_task(edit())
        try:
            yield
        finally:
            editing.cancel()
    await cluster.client.patch(EtcdCluster, NAME, MergePatch({"spec": {"size": 3, "options": None}}))


async def test_two_clusters_with_one_name_live_in_two_namespaces(cluster: Cluster) -> None:
    """Each has its own members and data; five members come at once here, and one there."""
    await cluster.create(Namespace(name="other"))
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1), namespace="other")
        await cluster.apply(example(5))
        here = await serves(cluster, 5)
        there = await cluster.eventually(
            lambda: cluster.get(EtcdCluster, NAME, namespace="other"),
            lambda found: (found.status.members.ready, found.status.size) == ([f"{NAME}-0"], 1),
            timeout=SECONDS,
            what="one member in the other namespace",
        )
        assert here.status.cluster_id != there.status.cluster_id
        async with workload(cluster, NAME):
            await cluster.client.delete(EtcdCluster, NAME, namespace="other")
            await cluster.eventually(
                lambda: cluster.list(Pod, namespace="other"), lambda pods: not pods, timeout=SECONDS
            )
        await serves(cluster, 5)


@pytest.mark.cluster(nodes=4)
async def test_a_member_whose_node_is_gone_is_replaced_in_seconds(cluster: Cluster) -> None:
    """And not after the five minutes of other silent members; noticed when somebody looks, twice a minute at least."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME):
            victim = await cluster.get(Pod, f"{NAME}-1")
            lost = victim.spec.node_name
            assert lost
            await cluster.client.patch(Node, lost, MergePatch({"metadata": {"annotations": {POWER: POWER_OFF}}}))
            await cluster.delete(Node, lost)
            await cluster.eventually(lambda: running(victim), lambda found: not found, timeout=SECONDS)
            await cluster.apply(example(3, healing=Healing(replace_lost_after_seconds=2)))  # it looks at once
            await serves(cluster, 3)
            serving = {pod.metadata.uid for pod in await cluster.list(Pod) if is_ready(pod)}
            assert victim.metadata.uid not in serving


async def running(pod: Pod) -> list[int]:
    """The processes of its etcd."""
    return processes_of(pod)


async def test_an_operator_that_is_killed_again_and_again_gets_there(http_cluster: Cluster, tmp_path: Path) -> None:
    """A process of its own, killed after some of its writes while members come and go; the seed says after which."""
    assert http_cluster.access is not None
    config = tmp_path / "kubeconfig"
    config.write_bytes(msgspec.json.encode(http_cluster.access.kubeconfig()))
    with running_operator(config):
        await http_cluster.eventually(lambda: applied(http_cluster, 1), bool, timeout=SECONDS, what="the kinds")
        await serves(http_cluster, 1)
    chance = random.Random(6)
    async with workload(http_cluster, NAME):
        for kill in range(KILLS):
            await http_cluster.apply(example((3, 1)[kill // (KILLS // 2)]))
            await lives_until(http_cluster, config, after=chance.randint(3, 12))
        with running_operator(config):
            await http_cluster.apply(example(3))
            await serves(http_cluster, 3)


async def applied(cluster: Cluster, size: int) -> bool:
    """Whether the operator has brought its kinds, and a cluster could be asked for."""
    await cluster.apply(example(size))
    return True


async def lives_until(cluster: Cluster, config: Path, *, after: int) -> None:
    """An operator that is killed after so many writes, or when nothing is left to write."""
    before = writes(cluster)

    async def done() -> bool:
        found = await cluster.get(EtcdCluster, NAME)
        calm = found.status.ready == f"{found.spec.size}/{found.spec.size}" == f"{found.status.size}/{found.spec.size}"
        return calm or writes(cluster) >= before + after

    with running_operator(config):
        await cluster.eventually(done, bool, timeout=SECONDS, what=f"{after} writes")


@contextmanager
def running_operator(config: Path) -> Iterator[None]:
    """A process of its own, which is killed when the block ends."""
    program = "from etcd_operator.declaration import etcd_operator as o; it = o(); it.election = None; it.run()"
    environment = {**os.environ, "KUBECONFIG": str(config), "PYTHONPATH": os.pathsep.join(sys.path)}
    with (config.parent / "operator.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def writes(cluster: Cluster) -> int:
    """What the administrator, who is the operator too, has written of pods, claims and clusters."""
    return sum(
        len(cluster.audit.records(verb=verb, resource=resource, user=ADMIN.name))
        for verb in ("create", "delete", "patch", "update")
        for resource in ("pods", "persistentvolumeclaims", "etcdclusters")
    )
