"""`Machine`: a cluster with a process node, for the tests of this folder."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from navarch._base.backoff import Backoff
from navarch._base.tasks import TaskSet
from navarch.cluster.nodes.images import Image, Images
from navarch.cluster.nodes.kubelet import Kubelet, KubeletOptions
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.cluster.nodes.network.network import ClusterNetwork
from navarch.cluster.nodes.pods.sandbox import KubeletBackoffs
from navarch.cluster.nodes.shim.runtime import ShimRuntime
from navarch.cluster.streams import LogOptions, ProcessOptions
from navarch.k8s.core.v1 import Container, ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodSpec
from navarch.k8s.events.v1 import Event
from navarch.testing.cluster import Cluster

BLOCKS = 160
"""Where blocks of addresses are taken from: those before are of clusters with a folder, which want theirs back."""

_numbers = itertools.count()


def quick_delays() -> KubeletBackoffs:
    """As Kubernetes waits, in a hurry."""
    soon = Backoff(initial=0.1, maximum=0.4, jitter=0.0)
    return KubeletBackoffs(restart=soon, pull=Backoff(initial=0.3, maximum=0.3, jitter=0.0), mount=soon)


def shell(script: str, name: str = "main", **fields: Any) -> Container:
    """A container whose program is a shell script. As in any container, SIGTERM means nothing to it unless it says so."""
    return Container(name=name, image="busybox", command=["sh", "-c", script], **fields)


class Machine:
    """One node, and what a test does with its pods."""

    def __init__(self, cluster: Cluster, folder: Path, network: ClusterNetwork, *, name: str = "machine") -> None:
        self.cluster = cluster
        self.folder = folder
        self.network = network
        self.shim = ShimRuntime(folder / "shim", stop_seconds=0.1, hidden=(folder / "pods", folder / "images"))
        self.images = Images((Image(name="script", argv=("/bin/sh", "-c")),))
        options = KubeletOptions(delays=quick_delays())
        self.node = Kubelet(cluster.client, name, self.shim, network, folder, images=self.images, options=options)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """The node runs while the block lasts."""
        running = TaskSet()
        running.start(self.node.run(), "node")
        try:
            async with asyncio.timeout(60):
                await self.node.ready.wait()
            yield
        finally:
            await running.stop()

    async def create(self, *containers: Container, name: str = "pod", **fields: Any) -> Pod:
        """A pod on this node; its processes have a second to end when it is deleted, unless they are given more."""
        fields = {"termination_grace_period_seconds": 1, "automount_service_account_token": False, **fields}
        spec = PodSpec(containers=list(containers), node_name=self.node.name, **fields)
        return await self.cluster.create(Pod(name=name, labels={"app": name}, spec=spec))

    async def run(self, *containers: Container, name: str = "pod", **fields: Any) -> Pod:
        """The same, once it is ready."""
        await self.create(*containers, name=name, **fields)
        return await self.until(is_ready, name=name)

    async def until(self, holds: Callable[[Pod], Any], *, name: str = "pod", what: str = "") -> Pod:
        """The pod, once it holds."""
        return await self.cluster.eventually(lambda: self.cluster.get(Pod, name), holds, timeout=60, what=what)

    async def ended(self, *containers: Container, name: str = "pod", **fields: Any) -> Pod:
        """A pod that runs to its end, once it is there."""
        await self.create(*containers, name=name, **{"restart_policy": "Never", **fields})
        return await self.until(lambda pod: pod.status.phase in {"Succeeded", "Failed"}, name=name)

    async def gone(self, name: str = "pod") -> None:
        """Returns when there is no such pod."""
        await self.cluster.eventually(
            self._names, lambda names: name not in names, timeout=60, what=f"pod {name} to be gone"
        )

    async def _names(self) -> set[str]:
        return {pod.name for pod in await self.cluster.list(Pod)}

    async def log(self, pod: Pod, container: str = "main", **options: Any) -> str:
        """What the container wrote."""
        pieces = self.node.logs(pod.metadata.uid, container, LogOptions(**options))
        return b"".join([piece async for piece in pieces]).decode()

    async def said(self, pod: Pod, text: str) -> None:
        """Returns when the container has written that: of a program that has just begun to run nothing else is known."""
        await self.cluster.eventually(
            lambda: self.log(pod), lambda log: text in log, timeout=60, what=f"the container to say {text!r}"
        )

    async def shows(self, pod: Pod, expected: str, *argv: str, container: str = "main") -> None:
        """Returns when a program inside the container prints that."""
        await self.cluster.eventually(
            lambda: self.output(pod, *argv, container=container),
            lambda printed: printed == expected,
            timeout=60,
            what=f"{' '.join(argv)} to print {expected!r}",
        )

    async def output(self, pod: Pod, *argv: str, container: str = "main") -> str:
        """What a program prints inside the container until it ends; to leave before that would end what it has begun."""
        process = await self.node.exec(pod.metadata.uid, container, argv, ProcessOptions())
        try:
            printed = b"".join([piece async for piece in process.stdout()]).decode()
            await process.wait()
            return printed
        finally:
            await process.close()

    async def reasons(self, name: str = "pod") -> set[str]:
        """The reasons of all events about the pod so far."""
        return {event.reason or "" for event in await self.cluster.list(Event) if _is_about(event, name)}

    async def noted(self, reason: str, name: str = "pod") -> str:
        """The note of the first event of that reason about the pod, once there is one."""

        async def notes() -> list[str]:
            found = [event for event in await self.cluster.list(Event) if _is_about(event, name)]
            return [event.note or "" for event in found if event.reason == reason]

        return (await self.cluster.eventually(notes, bool, timeout=60, what=f"an event {reason}"))[0]

    def pod_folder(self, pod: Pod) -> Path:
        """Where the node keeps what belongs to the pod."""
        return self.folder / "pods" / pod.metadata.uid


def _is_about(event: Event, name: str) -> bool:
    return event.regarding is not None and event.regarding.name == name


def is_ready(pod: Pod) -> bool:
    """Whether the pod is ready."""
    return any(known.type == "Ready" and known.status == "True" for known in pod.status.conditions or [])


def status_of(pod: Pod, container: str = "main") -> ContainerStatus:
    """What the pod's status says of the container."""
    every = [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]
    return {status.name: status for status in every}[container]


def end_of(pod: Pod, container: str = "main") -> ContainerStateTerminated:
    """How the container ended."""
    state = status_of(pod, container).state
    assert state is not None
    assert state.terminated is not None
    return state.terminated


def waits_for(pod: Pod, container: str = "main") -> str | None:
    """Why the container waits, if it does."""
    state = status_of(pod, container).state
    return state.waiting.reason if state is not None and state.waiting is not None else None


def condition(pod: Pod, kind: str) -> PodCondition:
    """The pod's condition of that type."""
    return {known.type: known for known in pod.status.conditions or []}[kind]


def long_while() -> str:
    """Seconds for which nobody else on this machine sleeps: a test knows its own processes by them."""
    return f"4711.{os.getpid():08d}{next(_numbers):04d}"


def sleeping(seconds: str) -> list[int]:
    """The processes of this machine that sleep so long."""
    return processes_with(f"sleep\0{seconds}")


def processes_with(text: str) -> list[int]:
    """The processes of this machine that have the text in their command line, but for this one."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if (
                path.name.isdigit()
                and int(path.name) != os.getpid()
                and text.encode() in (path / "cmdline").read_bytes()
            ):
                found.append(int(path.name))
        except OSError:
            continue
    return found


@asynccontextmanager
async def running_machine(cluster: Cluster, folder: Path) -> AsyncIterator[Machine]:
    """A machine on a network of its own, up while the block lasts."""
    block = LoopbackBlock.take(BLOCKS)
    network = ClusterNetwork(cluster.client, block, cluster.client.clock, random.Random(1))
    beside = TaskSet()
    beside.start(network.run(), "network")
    machine = Machine(cluster, folder, network)
    try:
        async with machine.up():
            yield machine
    finally:
        await beside.stop()
        block.close()
