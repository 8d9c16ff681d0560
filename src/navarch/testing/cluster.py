"""`Cluster`: the cluster of one test, in the test's own event loop or over HTTPS in a thread beside it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from navarch._base.clock import SystemClock
from navarch._base.movable_clock import MovableClock
from navarch.api import Dynamic, Object, Resource
from navarch.client import Client, Listing, connect
from navarch.client.rest_client import FieldSelector, LabelSelector
from navarch.client.target import Readable, kind_of
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.credentials import ClusterAccess
from navarch.cluster.embedded.https_front import ThreadedCluster
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.errors import InvalidValueError
from navarch.k8s.apiextensions.v1 import CustomResourceDefinition
from navarch.operator import Operator, needed_by, roles_of, serve
from navarch.operator.crds import prepare_crds
from navarch.operator.foreign_kinds import foreign_kinds
from navarch.schema import crd
from navarch.testing.eventually import Eventually, source_of
from navarch.testing.local_webhooks import LocalWebhookServer

T = TypeVar("T")
W = TypeVar("W", bound=Object | Dynamic)


class Engine(Protocol):
    """The running cluster behind a `Cluster`."""

    @property
    def audit(self) -> AuditLog:
        """Returns the log of every answered request."""
        ...

    async def revision(self) -> int:
        """Returns the store's current revision."""
        ...

    async def changed_since(self, revision: int) -> int:
        """Waits for a write after `revision`, and returns the store's revision then."""
        ...

    async def compact(self, revision: int) -> None:
        """Compacts the store: drops its history before that revision."""
        ...

    def token_of(self, name: str, *groups: str) -> str:
        """Returns a new bearer token of this user."""
        ...

    def client_with(self, token: str, namespace: str) -> Client:
        """Returns a client that sends this token."""
        ...


class Cluster:
    """The cluster of one test: it has the administrator's verbs, runs operators, and waits for what they do.

    `client` has every other verb; its namespace is `default`. `access` holds the address and credentials of a cluster
    that is served over HTTPS; it is None for a cluster without a network.
    """

    def __init__(self, client: Client, engine: Engine, access: ClusterAccess | None = None) -> None:
        self.client = client
        self.access = access
        self._engine = engine

    @property
    def audit(self) -> AuditLog:
        """Returns the log of answered requests, with user, verb and status code: `cluster.audit.records(verb="delete")`."""
        return self._engine.audit

    def client_as(self, name: str, *groups: str, namespace: str = "default") -> Client:
        """Returns a client of another user, who has the permissions that RBAC grants. A ServiceAccount is named
        `system:serviceaccount:<namespace>:<name>`.
        """
        return self._engine.client_with(self._engine.token_of(name, *groups), namespace)

    async def get(self, what: Readable[T], name: str, *, namespace: str | None = None) -> T:
        """See `Client.get`."""
        return await self.client.get(what, name, namespace=namespace)

    def list(
        self,
        what: Readable[T],
        *,
        namespace: str | None = None,
        labels: LabelSelector = None,
        fields: FieldSelector = None,
    ) -> Listing[T]:
        """See `Client.list`."""
        return self.client.list(what, namespace=namespace, labels=labels, fields=fields)

    async def create(self, new: W, *, namespace: str | None = None) -> W:
        """See `Client.create`."""
        return await self.client.create(new, namespace=namespace)

    async def apply(self, desired: W, *, namespace: str | None = None, force: bool = False) -> W:
        """See `Client.apply`."""
        return await self.client.apply(desired, namespace=namespace, force=force)

    async def delete(self, what: Readable[T], name: str, *, namespace: str | None = None) -> T | None:
        """See `Client.delete`."""
        return await self.client.delete(what, name, namespace=namespace)

    async def client_for(self, operator: Operator) -> Client:
        """Returns a client with the permissions that the operator declares, and no others: `run(operator, client=...)`.

        Applies `roles_of(..., needed_by(operator, ...))`, bound to a ServiceAccount of the operator's name.
        """
        namespace = self.client.options.namespace
        place = (operator.election.namespace or namespace) if operator.election else None
        account = f"system:serviceaccount:{namespace}:{operator.name}"
        needed = needed_by(operator, election_namespace=place, webhook_namespace=namespace)
        for role in roles_of(operator.name, needed, account):
            await self.client.apply(Dynamic(role), force=True)
        return self.client_as(account, namespace=namespace)

    async def pass_time(self, seconds: float) -> None:
        """Advances the clock of the operators and of the cluster; everything that is due by then has begun on return.

        Raises `InvalidValueError` for a cluster with process nodes or over HTTPS, which use the machine's clock.
        """
        clock = self.client.clock
        if not isinstance(clock, MovableClock):
            raise InvalidValueError(
                "expected a cluster in the test's own process, without process nodes: processes and connections use the "
                "machine's clock; use the fixture `cluster` and simulated nodes"
            )
        await clock.advance(seconds)

    async def compact(self, resource_version: str) -> None:
        """Drops the cluster's history before that version, as Kubernetes does after some minutes. A watch or list from
        an older version then gets 410 Gone.
        """
        await self._engine.compact(int(resource_version))

    @asynccontextmanager
    async def run(self, *operators: Operator, client: Client | None = None) -> AsyncIterator[None]:
        """Installs the operators' CRDs and runs the operators until the block ends; they finish the reconciles under way.

        Operators have the administrator's permissions unless `client` gives them others, or requests that fail; with
        `pytest --as-operator` the operator of the project has those of its roles.
        Their endpoints are not served: replicas and concurrent tests would need the same ports. Raises the error of an
        operator or of the block.
        """
        __tracebackhide__ = True  # the test's own line is what pytest shows
        async with self._running(operators, client or self.client):
            yield

    @asynccontextmanager
    async def _running(
        self, operators: Sequence[Operator], client: Client, *beside: Coroutine[Any, Any, None]
    ) -> AsyncIterator[None]:
        """Runs the operators, and what is given beside them, until the block ends; raises what any of them raises."""
        __tracebackhide__ = True
        served = [self._twin(operator) for operator in operators]
        prepared = asyncio.Event()
        for operator in operators:
            await self._install_crds(operator)
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(serve(client, *served, prepared=prepared), name="operators")
                others = [group.create_task(each, name="beside the operators") for each in beside]
                try:
                    if any(operator.admission_webhooks or operator.conversions for operator in operators):
                        await _first(prepared, running)
                    yield
                finally:
                    running.cancel()
                    for other in others:
                        other.cancel()
        except BaseExceptionGroup as failures:  # a test that fails is shown by its own line, not by a group
            failure = _unwrapped(failures)
            raise failure from failure.__cause__

    async def _install_crds(self, operator: Operator) -> None:
        """Installs the CRDs as the administrator: an operator with `crds="verify"` finds what its manifests would bring, and
        the CRDs of other projects, whose controllers are not there. A CRD that a test installed is left as it is.

        An operator that installs CRDs and converts them does so itself: they need the address of its webhook.
        """
        kinds = [each.primary for each in operator.controllers if issubclass(each.primary, Resource)]
        client = self.client.using(manager=operator.name)
        if operator.crds == "verify":
            kinds += [version for pair in operator.conversions for version in (pair.old, pair.new)]
            there = {each.name async for each in self.client.list(CustomResourceDefinition)}
            # Forced: the operator adds the conversion, without which versions would lose fields of each other.
            await prepare_crds(client, [each for each in kinds if each.__kind__.resource not in there], "force")
            for foreign in foreign_kinds(operator):
                model = foreign.cls
                if model is None or issubclass(model, Resource) or foreign.kind.resource in there:
                    continue
                await self.client.install(crd(model))
        elif not operator.conversions:
            await prepare_crds(client, kinds, operator.crds)

    def _twin(self, operator: Operator) -> Operator:
        """Returns the operator without endpoints; its webhooks are called in this process if the cluster is in it."""
        twin = copy.copy(operator)
        twin.endpoints = None
        if isinstance(self._engine, EmbeddedCluster):
            twin.webhook_server = LocalWebhookServer(self._engine)
        return twin

    async def eventually(
        self,
        read: Callable[[], Awaitable[T]],
        holds: Callable[[T], Any],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - it goes by the client's clock, and says what was awaited
        what: str = "",
    ) -> T:
        """Calls `read` after each write to the cluster until `holds` is true for its result; returns that result.

        An object that does not exist, or lacks a field that `holds` reads, does not hold yet. Raises `AssertionError`
        after `timeout` seconds; its message says what was awaited (`what`, or the source of `holds`) and what `read`
        returned last.
        """
        __tracebackhide__ = True
        return await Eventually(self._engine, self.client.clock, read, holds, what or source_of(holds)).wait(timeout)

    async def until(
        self,
        what: Readable[T],
        name: str,
        holds: Callable[[T], Any],
        *,
        namespace: str | None = None,
        timeout: float = 30.0,  # noqa: ASYNC109 - as above
    ) -> T:
        """Waits until `holds` is true for the object of that kind and name, and returns the object:
        `await cluster.until(Memcached, "cache", lambda it: len(it.status.nodes) == 3)`.

        An object that does not exist, or lacks a field that `holds` reads, does not hold yet. Raises `AssertionError`
        after `timeout` seconds; its message names the object and the condition, and shows the object as it was last.
        """
        __tracebackhide__ = True
        kind = kind_of(what)
        place = f"{namespace or self.client.options.namespace}/" if kind.namespaced else ""
        awaited = f"{kind.kind} {place}{name} to fulfil `{source_of(holds)}`"
        read = partial(self.client.get, what, name, namespace=namespace)
        return await Eventually(self._engine, self.client.clock, read, holds, awaited).wait(timeout)


async def _first(prepared: asyncio.Event, running: asyncio.Task[None]) -> None:
    """Waits until the operators are prepared, or have failed."""
    running.add_done_callback(lambda _: prepared.set())
    await prepared.wait()


def _unwrapped(failure: BaseException) -> BaseException:
    """Returns the only exception of nested groups; a group of several stays a group."""
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    return failure


@asynccontextmanager
async def in_process(components: ComponentOptions | None = None) -> AsyncIterator[Cluster]:
    """Runs a fresh cluster without a network. Its clock can be advanced, unless process nodes run programs."""
    clock = SystemClock() if components is not None and components.nodes else MovableClock()
    async with EmbeddedCluster(clock=clock, components=components) as embedded:
        yield Cluster(embedded.client(), embedded)


@asynccontextmanager
async def over_https(components: ComponentOptions | None = None) -> AsyncIterator[Cluster]:
    """Runs a fresh cluster over HTTPS on loopback, in its own thread, so that synchronous clients can use it."""
    with ThreadedCluster(partial(EmbeddedCluster, components=components)) as threaded:
        engine = _ThreadedEngine(threaded)
        async with connect(threaded.access.config()) as client:
            try:
                yield Cluster(client, engine, threaded.access)
            finally:
                await engine.close()


class _ThreadedEngine:
    """The engine of a cluster that runs in another thread."""

    def __init__(self, threaded: ThreadedCluster) -> None:
        self._threaded = threaded
        self._clients: list[Client] = []

    @property
    def audit(self) -> AuditLog:
        return self._threaded.cluster.audit

    async def revision(self) -> int:
        return await asyncio.wrap_future(self._threaded.submit(self._threaded.cluster.revision()))

    async def changed_since(self, revision: int) -> int:
        return await asyncio.wrap_future(self._threaded.submit(self._threaded.cluster.changed_since(revision)))

    async def compact(self, revision: int) -> None:
        await asyncio.wrap_future(self._threaded.submit(self._threaded.cluster.compact(revision)))

    def token_of(self, name: str, *groups: str) -> str:
        return self._threaded.cluster.token_of(name, *groups)

    def client_with(self, token: str, namespace: str) -> Client:
        client = connect(self._threaded.access.config(token, namespace))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        """Closes the clients that `client_with` returned."""
        for client in self._clients:
            await client.close()
