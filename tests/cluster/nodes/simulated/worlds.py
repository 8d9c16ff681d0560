"""Simulated nodes in virtual time, and what a test does with their pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from navarch._base.background import Background
from navarch._base.clock import ManualClock
from navarch.client import Client
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
from navarch.cluster.nodes.simulated.stages import LIFE, Life
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Container, ContainerStatus, Pod, PodSpec


class World:
    """A cluster without controllers, in which time stands still until it is told to pass."""

    def __init__(self, cluster: EmbeddedCluster, clock: ManualClock) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client()
        self.clock = clock
        self._background = Background()

    async def start(self, nodes: int, lives: Sequence[Life] = ()) -> None:
        """Simulates so many nodes; returns when they have joined."""
        self.nodes = SimulatedNodes(self.client, nodes, lives)
        self._background.start(self.nodes.run(), "simulated nodes")
        async with asyncio.timeout(60):
            await self.nodes.ready.wait()
        await self.clock.settle()

    async def stop(self) -> None:
        """Simulates no more."""
        await self._background.stop()

    async def create(
        self, name: str = "pod", *, node: str = "simulated-1", life: Life | None = None, **more: Any
    ) -> Pod:
        """A pod on that node, looked at once by it."""
        metadata = {key: more.pop(key) for key in ("labels", "finalizers") if key in more}
        annotations = {LIFE: msgspec.json.encode(life).decode()} if life is not None else {}
        spec = PodSpec(containers=[Container(name="main", image="none")], node_name=node, **more)
        pod = Pod(name=name, annotations=annotations, labels=metadata.get("labels", {}), spec=spec)
        pod.metadata.finalizers = metadata.get("finalizers", [])
        await self.client.create(pod)
        return await self.after(0, name)

    async def after(self, seconds: float, name: str = "pod") -> Pod:
        """The pod when so much time has passed."""
        await self.clock.advance(seconds)
        await self.clock.settle()
        return await self.client.get(Pod, name)

    async def is_gone_after(self, seconds: float, name: str = "pod") -> bool:
        """Whether there is no such pod when so much time has passed."""
        try:
            await self.after(seconds, name)
        except NotFound:
            return True
        return False

    def writes(self, name: str = "pod") -> int:
        """How often the status of the pod was written."""
        return len(self.cluster.audit.records(verb="patch", name=name))


@asynccontextmanager
async def world(nodes: int = 1, lives: Sequence[Life] = ()) -> AsyncIterator[World]:
    """A world whose nodes have joined."""
    clock = ManualClock()
    async with EmbeddedCluster(clock=clock, seed=1) as cluster:
        here = World(cluster, clock)
        try:
            await here.start(nodes, lives)
            yield here
        finally:
            await here.stop()


def ready(pod: Pod) -> bool:
    """Whether the pod is ready."""
    return conditions(pod).get("Ready") == "True"


def conditions(pod: Pod) -> dict[str, str]:
    """The conditions of the pod."""
    return {each.type: each.status for each in pod.status.conditions or ()}


def main(pod: Pod) -> ContainerStatus:
    """What the pod's status says of its container."""
    return (pod.status.container_statuses or [])[0]
