"""A Deployment of real processes that rolls over, and a client that uses it all the while."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from fleets.waiting import until, until_accounts
from measuring import Run
from navarch import Client, connect, load
from navarch._base.clock import SystemClock
from navarch.api import ObjectMeta
from navarch.client import MergePatch, WatchOptions
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import (
    Container,
    ContainerPort,
    Lifecycle,
    LifecycleHandler,
    PodSpec,
    PodTemplateSpec,
    Probe,
    Service,
    ServicePort,
    ServiceSpec,
    SleepAction,
    TCPSocketAction,
)
from navarch.k8s.meta.v1 import LabelSelector

_NAME, _PORT, _EVERY, _PATIENCE = "bench", 11211, 0.01, 10.0
_LABELS = {"app": _NAME}
_UNAVAILABLE = 0.25


async def roll_over(kubeconfig: Path, replicas: int) -> Run:
    """How long the rollover took, how many connections were made and how many of them failed meanwhile, and how often
    fewer pods were available than may be.
    """
    async with connect(load(kubeconfig)) as client:
        await until_accounts(client)
        address = await _deployed(client, replicas)
        least = replicas - int(replicas * _UNAVAILABLE)
        async with asyncio.TaskGroup() as group:
            using, watching = _Using(address, group), _Watching(client, least)
            tasks = [group.create_task(using.run()), group.create_task(watching.run())]
            began = time.monotonic()
            await _changed(client, replicas)
            took = time.monotonic() - began
            for task in tasks:
                task.cancel()
        more = {"failed": using.failed, "slowest": using.slowest, "below": watching.below, "changes": watching.changes}
        return Run(took, 0.0, 0.0, using.made, more)


async def _deployed(client: Client, replicas: int) -> str:
    """The address at which the pods are reached, once they all are available."""
    spec = ServiceSpec(selector=_LABELS, ports=[ServicePort(port=_PORT)])
    service = await client.create(Service(name=_NAME, spec=spec))
    await client.create(_deployment(replicas))
    await until(lambda: _is_done(client, replicas), f"{replicas} pods")
    assert service.spec.cluster_ip is not None
    return service.spec.cluster_ip


def _deployment(replicas: int) -> Deployment:
    """As in production: what is to go gets no new connections before it ends."""
    container = Container(
        name="main",
        image="memcached",
        ports=[ContainerPort(container_port=_PORT)],
        readiness_probe=Probe(tcp_socket=TCPSocketAction(port=_PORT), period_seconds=1),
        lifecycle=Lifecycle(pre_stop=LifecycleHandler(sleep=SleepAction(seconds=1))),
    )
    spec = PodSpec(containers=[container], automount_service_account_token=False)
    template = PodTemplateSpec(metadata=ObjectMeta(labels=_LABELS), spec=spec)
    selector = LabelSelector(match_labels=_LABELS)
    return Deployment(name=_NAME, spec=DeploymentSpec(replicas=replicas, selector=selector, template=template))


async def _changed(client: Client, replicas: int) -> None:
    """Another template, until its pods have taken the place of all others."""
    template = {"metadata": {"annotations": {"version": "2"}}}
    await client.patch(Deployment, _NAME, MergePatch({"spec": {"template": template}}))
    await until(lambda: _is_done(client, replicas), "a rollover")


async def _is_done(client: Client, replicas: int) -> bool:
    found = await client.get(Deployment, _NAME)
    status = found.status
    seen = status.observed_generation == found.metadata.generation
    return seen and status.updated_replicas == status.available_replicas == status.replicas == replicas


class _Using:
    """Connects every 10 ms, asks something, and wants an answer."""

    def __init__(self, address: str, group: asyncio.TaskGroup) -> None:
        self.made = self.failed = 0
        self.slowest = 0.0
        self._address = address
        self._group = group

    async def run(self) -> None:
        clock = SystemClock()
        while True:
            self._group.create_task(self._use())
            await clock.sleep(_EVERY)

    async def _use(self) -> None:
        self.made += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(_PATIENCE):
                answered = await self._answer()
        except (OSError, TimeoutError):
            answered = b""
        self.failed += not answered.startswith(b"VERSION")
        self.slowest = max(self.slowest, time.monotonic() - began)

    async def _answer(self) -> bytes:
        reader, writer = await asyncio.open_connection(self._address, _PORT)
        try:
            writer.write(b"version\r\n")
            return await reader.readline()
        finally:
            writer.close()


class _Watching:
    """Counts how often fewer pods were available than there must be."""

    def __init__(self, client: Client, least: int) -> None:
        self.changes = self.below = 0
        self._client = client
        self._least = least

    async def run(self) -> None:
        async with self._client.watch(Deployment, options=WatchOptions(initial=True)) as events:
            async for event in events:
                self.changes += 1
                self.below += (event.object.status.available_replicas or 0) < self._least
