"""The memcached operator of examples/, as it is written, on a real control plane."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import memcached_operator
import rig
from chaos.waiting import until, until_none
from conformance.controllers.watching import until_gone
from memcached_operator.api.cache.v1alpha1.memcached import Memcached, MemcachedSpec
from memcached_operator.controllers.memcached import farewell, reconcile
from navarch.api import Key, Kind
from navarch.client import ALL, Client, MergePatch, Request, Response, Transport, WebSocket
from navarch.controller import Context, ElectionOptions
from navarch.errors import NotFound
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.coordination.v1 import Lease

CRD = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
EXAMPLE = Path(memcached_operator.__file__).parents[2]
LIMIT = 60.0
LEASE_SECONDS = ElectionOptions(name="default").lease_seconds
ASKING = ("/leases", "/selfsubject")

needs_pods = pytest.mark.real
"""Somebody must make the pods of a Deployment: the embedded server alone does not."""


class Heard:
    """A transport that remembers what is asked through it."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.origin = inner.origin
        self.host = inner.host
        self.asked: list[str] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.path}")
        return await self._inner.send(request)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        raise NotImplementedError

    async def close(self) -> None:
        await self._inner.close()


class Replica:
    """The operator as one process would run it; it brings its CRD, as an operator without manifests does."""

    def __init__(self, client: Client) -> None:
        self._operator = copy.copy(memcached_operator.operator)
        self._operator.crds = "install"
        self._stopping = asyncio.Event()
        self._heard: list[Heard] = []
        self._client = client.through(self._hear)

    def _hear(self, transport: Transport) -> Transport:
        self._heard.append(Heard(transport))
        return self._heard[-1]

    @property
    def stands(self) -> bool:
        """Whether it follows the Lease and what it will have to reconcile."""
        asked = {line for heard in self._heard for line in heard.asked}
        return all(any(path in line for line in asked) for path in ("/leases", "/memcacheds", "/deployments", "/pods"))

    @property
    def writes(self) -> list[str]:
        """What it has written but for the Lease; questions about rights are no writes."""
        asked = [line for heard in self._heard for line in heard.asked]
        return [line for line in asked if not line.startswith("GET") and not any(word in line for word in ASKING)]

    async def run(self) -> None:
        """Until it is told to stop, as a signal would."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._operator.serve(self._client))
            await self._stopping.wait()
            task.cancel()

    def stop(self) -> None:
        self._stopping.set()


@contextlib.asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        for replica in replicas:
            group.create_task(replica.run())
        try:
            yield
        finally:
            for replica in replicas:
                replica.stop()


@pytest.fixture
async def reconciled(monkeypatch: pytest.MonkeyPatch) -> collections.Counter[Key]:
    """How often each object was reconciled."""
    counts: collections.Counter[Key] = collections.Counter()
    inner: Any = reconcile.reconcile

    async def counting(memcached: Memcached, ctx: Context) -> None:
        counts[ctx.key] += 1
        await inner(memcached, ctx)

    monkeypatch.setattr(reconcile, "reconcile", counting)
    return counts


async def until_nodes(client: Client, name: str, size: int) -> Memcached:
    """The object when its status has as many names as were asked for, and has seen its newest spec."""
    found: list[Memcached] = []

    async def look() -> str | None:
        try:
            found.append(await client.get(Memcached, name))
        except NotFound:
            return f"expected the API server to know {name}"
        status, generation = found[-1].status, found[-1].metadata.generation
        if len(status.nodes) == size and status.observed_generation == generation:
            return None
        return f"expected {size} nodes in the status of {name} for generation {generation}, got {status}"

    await until_none(look, seconds=LIMIT)
    return found[-1]


async def without_definition(client: Client) -> None:
    """As on a cluster that has never heard of the operator. What tests before have left waits for its farewell."""
    unhold = MergePatch({"metadata": {"finalizers": None}})
    with contextlib.suppress(NotFound):
        async for left in client.list(Memcached, namespace=ALL):
            await client.patch(Memcached, left.name, unhold, namespace=left.namespace)
    with contextlib.suppress(NotFound):
        await client.delete(CRD, Memcached.__kind__.resource)
    await until_gone(client, CRD, Memcached.__kind__.resource)


async def made(client: Client, name: str, size: int) -> None:
    await client.create(Memcached(name=name, spec=MemcachedSpec(size=size)))


@needs_pods
async def test_life_of_a_memcached(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a cluster without the CRD: it is brought along; three pods, then one, then a farewell, and it is gone."""
    said_farewell: list[str] = []
    inner: Any = farewell

    async def noting(memcached: Memcached, ctx: Context) -> None:
        said_farewell.append(memcached.name)
        await inner(memcached, ctx)

    monkeypatch.setattr(reconcile, "on_deletion", noting)
    await without_definition(client)
    async with running(Replica(client)):
        await until_served(client)
        await made(client, "cache", 3)
        three = await until_nodes(client, "cache", 3)
        assert (await owned_deployment(client, three)).spec.replicas == 3
        assert three.metadata.finalizers == ["cache.example.com/memcached-operator.memcached"]
        await client.patch(Memcached, "cache", MergePatch({"spec": {"size": 1}}))
        one = await until_nodes(client, "cache", 1)
        assert (await owned_deployment(client, one)).spec.replicas == 1
        assert set(one.status.nodes) < set(three.status.nodes)
        await client.delete(Memcached, "cache")
        await until_gone(client, Memcached, "cache")
        assert said_farewell == ["cache"]


async def owned_deployment(client: Client, memcached: Memcached) -> Deployment:
    """Which goes with its owner: the garbage collector takes up to a minute to learn of a new kind, so it is not awaited."""
    found = await client.get(Deployment, memcached.name)
    (owner,) = found.metadata.owner_references
    assert (owner.uid, owner.controller) == (memcached.metadata.uid, True)
    return found


async def until_served(client: Client) -> None:
    async def look() -> str | None:
        try:
            await client.list(Memcached)
        except NotFound:
            return "expected the operator to install the CRD of Memcached"
        return None

    await until_none(look, seconds=LIMIT)


async def until_counted(client: Client, name: str, size: int) -> None:
    """Returns when its Deployment says of all pods that they are there: nobody runs them, so that nothing more happens to it."""

    async def look() -> str | None:
        found = await client.get(Deployment, name)
        counts = (found.status.updated_replicas, found.status.unavailable_replicas)
        return None if counts == (size, size) else f"expected {name} with {size} pods that wait, got {found.status}"

    await until_none(look, seconds=LIMIT)


@needs_pods
async def test_settled_objects_are_left_alone(client: Client, reconciled: collections.Counter[Key]) -> None:
    """A few reconciles and two applies bring an object to rest, and what happens to another does not disturb it."""
    replica = Replica(client)
    namespace = client.options.namespace
    async with running(replica):
        await until_served(client)
        await made(client, "first", 3)
        await until_nodes(client, "first", 3)
        await made(client, "second", 2)
        await until_nodes(client, "second", 2)
        await until_counted(client, "first", 3)
        before = reconciled[Key(namespace, "first")]
        await client.patch(Memcached, "second", MergePatch({"spec": {"size": 4}}))
        await until_nodes(client, "second", 4)
    after = reconciled[Key(namespace, "first")]
    assert after <= before + 1, f"expected first to be at rest, got {after - before} reconciles while second changed"
    assert before <= 12, f"expected about one reconcile per change of the Deployment's status, got {before}"
    applies = [write for write in replica.writes if write.endswith("/deployments/first")]
    assert len(applies) <= 3, (
        f"expected an apply, and one after the Deployment was annotated with a revision: {applies}"
    )


@needs_pods
async def test_foreign_change_of_the_deployment_is_undone(client: Client) -> None:
    """Somebody scales the Deployment by hand; what the Memcached asks for is brought back."""
    async with running(Replica(client)):
        await until_served(client)
        await made(client, "cache", 2)
        await until_nodes(client, "cache", 2)
        await client.patch(Deployment, "cache", MergePatch({"spec": {"replicas": 5}}))

        async def look() -> str | None:
            found = (await client.get(Deployment, "cache")).spec.replicas
            return None if found == 2 else f"expected 2 replicas again, got {found}"

        await until_none(look, seconds=LIMIT)


@needs_pods
async def test_only_one_of_two_replicas_works_and_the_other_takes_over(client: Client) -> None:
    """Nothing is written by the one that stands by; when the leader stops it goes on, long before the Lease would end."""
    first, second = Replica(client), Replica(client)
    async with running(first):
        await until_served(client)
        await made(client, "cache", 1)
        await until_nodes(client, "cache", 1)
        async with running(second):
            await until(lambda: second.stands, "the second replica to stand by")
            await client.patch(Memcached, "cache", MergePatch({"spec": {"size": 2}}))
            await until_nodes(client, "cache", 2)
            assert second.writes == [], "expected nothing from the replica that stands by"
            first.stop()
            await until(lambda: bool(second.writes), "the second replica to go on", seconds=LEASE_SECONDS / 2)
            written = len(first.writes)
            await client.patch(Memcached, "cache", MergePatch({"spec": {"size": 3}}))
            await until_nodes(client, "cache", 3)
            assert len(first.writes) == written, f"expected nothing from the one that stopped, got {first.writes}"


async def test_program_runs_until_it_is_told_to_stop(client: Client, rig_cluster: rig.Cluster) -> None:
    """`python -m memcached_operator` with its manifests serves its sample; SIGTERM ends it with 0, and the Lease is free."""
    environment = {**os.environ, "KUBECONFIG": str(rig_cluster.kubeconfig), "PYTHONPATH": str(EXAMPLE / "src")}
    await asyncio.to_thread(rig_cluster.kubectl, "apply", "-k", str(EXAMPLE / "config/crd"))
    await until_served(client)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "memcached_operator", "--leader-elect", "--health-probe-bind-address=0"),
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        sample = str(EXAMPLE / "config/samples")
        await asyncio.to_thread(rig_cluster.kubectl, "apply", "-n", client.options.namespace, "-k", sample)
        await until_nodes(client, "cache", 3)
        program.terminate()
        async with asyncio.timeout(LIMIT):
            _, said = await program.communicate()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert program.returncode == 0, said.decode()
    assert json.loads(said.splitlines()[-1])["event"] == "stopped"
    lease = await client.get(Lease, "memcached-operator", namespace="default")
    assert not lease.spec.holder_identity
