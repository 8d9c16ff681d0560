"""Controllers that are killed at any moment finish their work after a restart, and do nothing twice."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence

import pytest

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import SELECTOR, template
from conformance.controllers.watching import active_pods, pods_of, until
from navarch._base.clock import SystemClock
from navarch.client import Client, MergePatch, Request, Response, Transport, WebSocket
from navarch.cluster.controllers.manager import builtin_operator
from navarch.errors import ConnectionLostError
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec
from navarch.k8s.batch.v1 import Job, JobSpec
from navarch.k8s.core.v1 import Pod
from navarch.operator import serve
from navarch.testing.cluster import Cluster

pytestmark = pytest.mark.cluster(controllers=False)

_MOST_WRITES = 12


class Writes:
    """How many may still be asked for, by all transports together; then it is over."""

    def __init__(self, left: int) -> None:
        self._left = left
        self.over = asyncio.Event()

    def count(self, request: Request) -> None:
        self._left -= request.method != "GET"
        if self._left <= 0:
            self.over.set()


class Cut:
    """A transport that is cut off after some write: what was asked before is carried out, nothing is afterwards."""

    def __init__(self, inner: Transport, server: asyncio.TaskGroup, writes: Writes) -> None:
        self._inner = inner
        self._server = server
        self._writes = writes
        self.origin = inner.origin
        self.host = inner.host

    async def send(self, request: Request) -> Response:
        if self._writes.over.is_set():
            raise ConnectionLostError("it is cut off")
        self._writes.count(request)
        return await asyncio.shield(self._server.create_task(self._inner.send(request)))

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        raise NotImplementedError

    async def close(self) -> None: ...


async def run_for(client: Client, count: int) -> None:
    """The controllers run for so many writes, and are then killed amid whatever they are at; what they had asked for is
    still done. By the writes, and not by the time: on a slow machine they would never get to any.
    """
    writes, operator = Writes(count), builtin_operator()
    operator.drain_seconds = 0.0
    async with asyncio.TaskGroup() as server, asyncio.TaskGroup() as group:
        running = group.create_task(serve(client.through(lambda inner: Cut(inner, server, writes)), operator))
        await writes.over.wait()
        running.cancel()


@contextlib.asynccontextmanager
async def restarted_often(client: Client, seed: int) -> AsyncIterator[None]:
    """The controllers run for some writes at a time, now fewer, now more, and begin anew with nothing in mind; at times
    they are killed before they have seen anything.
    """
    rng = random.Random(seed)

    async def again_and_again() -> None:
        while True:
            await run_for(client, rng.randint(0, _MOST_WRITES))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(again_and_again())
        try:
            yield
        finally:
            task.cancel()


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return cluster.client


async def finished_by(client: Client, kubelet: Kubelet) -> None:
    """Ends every pod that runs, again and again."""
    while True:
        for pod in await active_pods(client):
            if pod.status.phase == "Running":
                await kubelet.finish(pod)
        await SystemClock().sleep(0.02)


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_pod_of_a_job_is_counted_once(client: Client, seed: int) -> None:
    """None is missed, none is counted twice, and none is made that is not needed."""
    spec = JobSpec(template=template(restart_policy="Never"), parallelism=4, completions=20)
    async with restarted_often(client, seed), Kubelet(client).running() as kubelet, asyncio.TaskGroup() as group:
        ending = group.create_task(finished_by(client, kubelet))
        await client.create(Job(name="work", spec=spec))
        done = await until(
            lambda: client.get(Job, "work"),
            lambda found: any(each.type == "Complete" for each in found.status.conditions or ()),
            "the Job to be complete",
            seconds=240,
        )
        ending.cancel()
    assert (done.status.succeeded, done.status.failed, done.status.active) == (20, None, None)
    pods = await pods_of(client)
    assert [pod.status.phase for pod in pods] == ["Succeeded"] * 20
    assert not any(pod.metadata.finalizers for pod in pods)


@pytest.mark.parametrize("seed", [1, 2])
async def test_rollout_goes_on_where_it_was(client: Client, seed: int) -> None:
    """One ReplicaSet for each version, and in the end the pods of the last."""
    made = Deployment(name="web", spec=DeploymentSpec(replicas=6, selector=SELECTOR, template=template()))
    async with restarted_often(client, seed), Kubelet(client).running():
        await client.create(made)
        for image in ("second", "third"):
            containers = [{"name": "main", "image": image}]
            changes = {"spec": {"template": {"spec": {"containers": containers}}}}
            await client.patch(Deployment, "web", MergePatch(changes))
            await until(lambda: client.get(Deployment, "web"), is_through, f"{image} to be through", seconds=240)
    assert [pod.spec.containers[0].image for pod in await active_pods(client)] == ["third"] * 6


def is_through(found: Deployment) -> bool:
    status = found.status
    return status.observed_generation == found.metadata.generation and {
        status.replicas,
        status.updated_replicas,
        status.available_replicas,
    } == {found.spec.replicas}


async def test_stateful_set_keeps_its_order(client: Client) -> None:
    """Never a pod before the one before it serves, whoever made it."""
    made = StatefulSet(name="web", spec=StatefulSetSpec(replicas=4, selector=SELECTOR, template=template()))
    served: list[set[str]] = []

    async def look() -> StatefulSet:
        pods = await active_pods(client)
        served.append({pod.name for pod in pods if pod.status.phase == "Running"})
        assert all(predecessor(pod) in {None, *served[-1]} for pod in pods), [pod.name for pod in pods]
        return await client.get(StatefulSet, "web")

    async with restarted_often(client, 1), Kubelet(client).running():
        await client.create(made)
        await until(look, lambda found: found.status.ready_replicas == 4, "four that serve", seconds=240)


def predecessor(pod: Pod) -> str | None:
    name, _, number = pod.name.rpartition("-")
    return f"{name}-{int(number) - 1}" if int(number) else None
