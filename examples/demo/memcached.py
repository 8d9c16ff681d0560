"""The memcached operator on a cluster of this machine: `make demo-memcached`.

Everything is real but for the machines: an API server that kubectl can talk to, Kubernetes' controllers and scheduler, and
two nodes whose pods are processes. With `--stay` it stays up at the end, to be looked at by hand.
"""

from __future__ import annotations

import asyncio
import sys

from rich.console import RenderableType
from rich.table import Table

from memcached_operator.api.cache.v1alpha1.memcached import Memcached, MemcachedSpec
from memcached_operator.controllers.memcached import selector
from navarch.k8s.core.v1 import Node, Pod
from navarch.operator import load_operator
from navarch.testing import Cluster
from stage import Stage, perform, scene, stay_up

NAME = "cache"
SECONDS = 60.0
HINTS = (
    ". .venv/bin/activate",
    'eval "$(navarch cluster up --nodes 3)"',
    "kubectl apply -k examples/memcached/config/crd",
    "PYTHONPATH=examples/memcached/src python -m memcached_operator &",
    "kubectl apply -k examples/memcached/config/samples",
    "kubectl get memcacheds,pods -o wide",
    "kill %1; navarch cluster down --delete",
)


class Story:
    """What happens, in order."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.stage = Stage("navarch: an operator, from nothing", self._pods)

    async def tell(self) -> None:
        """From a cluster without anything to one where everything is gone again."""
        stage, cluster = self.stage, self._cluster
        with stage.step("a cluster is there, and its nodes join it") as step:
            nodes = await cluster.eventually(lambda: cluster.list(Node), lambda found: len(found) == 2, timeout=SECONDS)
            step.note = ", ".join(sorted(node.name for node in nodes))
        async with cluster.run(load_operator("memcached_operator")):
            with stage.step("the memcached operator runs, and its CRD is there"):
                await cluster.apply(Memcached(name=NAME, spec=MemcachedSpec(size=3)))
            await self._scale(3, "a Memcached of size 3 is applied: three processes")
            await self._store()
            await self._lose_a_pod()
            await self._scale(5, "it is scaled to 5")
            with stage.step("it is deleted, and everything goes with it"):
                await cluster.delete(Memcached, NAME)
                await cluster.eventually(self._all, lambda pods: not pods, timeout=SECONDS)

    async def _scale(self, size: int, title: str) -> None:
        with self.stage.step(title):
            await self._cluster.apply(Memcached(name=NAME, spec=MemcachedSpec(size=size)))
            await self._cluster.eventually(
                self._all, lambda pods: len([pod for pod in pods if _is_ready(pod)]) == size, timeout=SECONDS
            )

    async def _store(self) -> None:
        with self.stage.step("something is stored in one of them, and read again") as step:
            pod, *_ = await self._all()
            said = await _told(pod.status.pod_ip or "", b"set ship 0 0 5\r\nArgo!\r\nget ship\r\n", b"END\r\n")
            assert b"Argo!" in said, said
            step.note = f"{pod.name} at {pod.status.pod_ip}:11211"

    async def _lose_a_pod(self) -> None:
        with self.stage.step("a pod is killed: another takes its place") as step:
            lost, *_ = await self._all()
            await self._cluster.client.delete(Pod, lost.name, grace_seconds=0)
            found = await self._cluster.eventually(
                self._all, lambda pods: _is_whole_again(pods, lost.name, 3), timeout=SECONDS
            )
            newest = max(found, key=lambda pod: str(pod.metadata.creation_timestamp))
            step.note = f"{newest.name} instead of {lost.name}"

    async def _all(self) -> list[Pod]:
        found = await self._cluster.list(Pod, labels=selector(Memcached(name=NAME)))
        return sorted(found, key=lambda pod: pod.name)

    async def _pods(self) -> RenderableType:
        table = Table("POD", "NODE", "STATUS", "READY", "RESTARTS", "IP", box=None, header_style="bold", pad_edge=False)
        for pod in await self._all():
            restarts = str(sum(each.restart_count for each in pod.status.container_statuses or []))
            phase = "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase or "Pending"
            ready = "[green]yes[/]" if _is_ready(pod) else "no"
            table.add_row(pod.name, pod.spec.node_name or "-", phase, ready, restarts, pod.status.pod_ip or "-")
        return table


def _is_ready(pod: Pod) -> bool:
    conditions = pod.status.conditions or []
    return pod.metadata.deletion_timestamp is None and any(
        condition.type == "Ready" and condition.status == "True" for condition in conditions
    )


def _is_whole_again(pods: list[Pod], lost: str, size: int) -> bool:
    ready = [pod.name for pod in pods if _is_ready(pod)]
    return len(ready) == size and lost not in ready


async def _told(address: str, said: bytes, end: bytes) -> bytes:
    """What memcached answers."""
    reader, writer = await asyncio.open_connection(address, 11211)
    try:
        writer.write(said)
        return await asyncio.wait_for(reader.readuntil(end), SECONDS)
    finally:
        writer.close()


async def main(*, stay: bool) -> None:
    """Tells the story, and says how to go on."""
    async with scene(nodes=2, look="kubectl get all", hints=HINTS) as (cluster, _):
        story = Story(cluster)
        async with story.stage.shown():
            await story.tell()
        if stay:
            await stay_up()


if __name__ == "__main__":
    sys.exit(perform(main(stay="--stay" in sys.argv[1:])))
