"""Clusters of etcd on the embedded cluster: its nodes run etcd, and the operator is a process of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec

from etcd_operator.kinds import EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, MemberStorage, PodPolicy
from measuring import Worker
from navarch import Quantity
from navarch.cluster.embedded.components import ComponentOptions
from navarch.errors import EtcdError
from navarch.etcd import EtcdClient, EtcdOptions
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, PodSecurityContext
from navarch.testing import Cluster
from navarch.testing.cluster import over_https
from rig import programs

__all__ = ["OPERATOR", "Etcds", "running"]

T = TypeVar("T")

OPERATOR = "etcd-operator"
_VERSION = programs.ETCD_VERSION.removeprefix("v")
_SECONDS = 180.0


class Etcds:
    """What is done to clusters of etcd, and awaited of them."""

    def __init__(self, cluster: Cluster, operator: Worker) -> None:
        self.cluster = cluster
        self.operator = operator

    async def apply(self, name: str, size: int) -> None:
        """Asks for a cluster. Its pods run as whoever runs this, who can surely run the program."""
        spec = EtcdClusterSpec(
            size=size,
            version=_VERSION,
            storage=MemberStorage(size=Quantity("1Gi")),
            pod=PodPolicy(security_context=PodSecurityContext()),
        )
        await self.cluster.apply(EtcdCluster(name=name, spec=spec))

    async def serves(self, name: str, size: int) -> None:
        """Returns when so many members serve, and the operator has nothing left to do."""
        await self.cluster.eventually(
            lambda: self._told(name),
            lambda told: len(told[1].members.ready) == size == told[1].size and _is_calm(*told),
            timeout=_SECONDS,
            what=f"{name} with {size} members that serve",
        )

    async def _told(self, name: str) -> tuple[int | None, EtcdClusterStatus]:
        found = await self.cluster.get(EtcdCluster, name)
        return found.metadata.generation, found.status

    async def delete(self, name: str) -> None:
        """Returns when nothing is left of it."""
        await self.cluster.delete(EtcdCluster, name)
        await self._until(lambda: self.pods(name), lambda pods: not pods, f"no pod of {name}")
        await self._until(lambda: self.claims(name), lambda claims: not claims, f"no claim of {name}")

    async def pods(self, name: str) -> list[Pod]:
        """Its pods."""
        return list(await self.cluster.list(Pod, labels={"etcd_cluster": name}))

    async def claims(self, name: str) -> set[str]:
        """The identities of its claims."""
        found = await self.cluster.list(PersistentVolumeClaim, labels={"etcd_cluster": name})
        return {str(claim.metadata.uid) for claim in found}

    async def endpoints(self, name: str) -> tuple[str, ...]:
        """Where its members listen."""
        return tuple(f"http://{pod.status.pod_ip}:2379" for pod in await self.pods(name) if pod.status.pod_ip)

    async def leader(self, name: str) -> Pod:
        """The pod of the member that says that it leads, once all members answer and agree."""
        pods = await self._until(lambda: self._following(name), lambda found: found[0] == found[1] > 0, f"{name} whole")
        leading = await self._leading(await self.pods(name))
        assert leading is not None, f"expected {pods[0]} members of {name} to have a leader"
        return leading

    async def _following(self, name: str) -> tuple[int, int]:
        """How many members there are, and how many of them know a leader."""
        pods = await self.pods(name)
        said = [await _leader_according_to(pod) for pod in pods]
        return len(pods), sum(1 for _, leader in said if leader)

    async def _leading(self, pods: list[Pod]) -> Pod | None:
        for pod in pods:
            itself, leader = await _leader_according_to(pod)
            if itself and itself == leader:
                return pod
        return None

    async def lose_disk(self, name: str, pod: Pod) -> None:
        """Takes a member's pod and claim; returns when another claim is in its place."""
        lost = await self.cluster.get(PersistentVolumeClaim, pod.name)
        count = len(await self.claims(name))
        await self.cluster.delete(PersistentVolumeClaim, pod.name)
        await self.cluster.client.delete(Pod, pod.name, grace_seconds=0)
        await self._until(
            lambda: self.claims(name),
            lambda claims: lost.metadata.uid not in claims and len(claims) == count,
            f"another claim in the place of {pod.name}",
        )

    async def _until(self, read: Callable[[], Awaitable[T]], holds: Callable[[T], bool], what: str) -> T:
        return await self.cluster.eventually(read, holds, timeout=_SECONDS, what=what)


def _is_calm(generation: int | None, status: EtcdClusterStatus) -> bool:
    current = status.observed_generation == generation
    return current and not status.is_true("Progressing") and not status.is_true("Degraded")


async def _leader_according_to(pod: Pod) -> tuple[int, int]:
    """The member's own number and that of its leader, 0 if it does not answer or knows none."""
    url = f"http://{pod.status.pod_ip}:2379"
    if not pod.status.pod_ip:
        return 0, 0
    try:
        async with EtcdClient(EtcdOptions(endpoints=(url,), timeout=0.5, connect_timeout=0.5, patience=0)) as etcd:
            status = await etcd.maintenance.status(url)
    except EtcdError:
        return 0, 0
    return status.header.member_id, status.leader


@asynccontextmanager
async def running(nodes: int) -> AsyncIterator[Etcds]:
    """A cluster whose nodes have the rig's etcd, and the operator on it, in its own name, so that it can be counted."""
    with TemporaryDirectory(prefix="navarch-bench-") as folder:
        async with over_https(ComponentOptions(nodes=nodes, images=_images(Path(folder)))) as cluster:
            with _operator(cluster, Path(folder, "kubeconfig")) as operator:
                await cluster.eventually(
                    lambda: cluster.list(EtcdCluster), lambda _: True, timeout=_SECONDS, what="the operator's kinds"
                )
                yield Etcds(cluster, operator)


def _images(folder: Path) -> Path:
    """A file that names the rig's etcd."""
    images = folder / "images.json"
    known = {"name": "etcd", "version": _VERSION, "argv": [str(programs.ETCD.path)]}
    images.write_bytes(msgspec.json.encode([known]))
    return images


@contextmanager
def _operator(cluster: Cluster, kubeconfig: Path) -> Iterator[Worker]:
    assert cluster.access is not None
    config = cluster.access.kubeconfig()
    config["users"][0]["user"] |= {"as": OPERATOR, "as-groups": ["system:masters"]}
    kubeconfig.write_bytes(msgspec.json.encode(config))
    with Worker([sys.executable, "-m", "etcd_operator"], {"KUBECONFIG": str(kubeconfig)}) as worker:
        yield worker
