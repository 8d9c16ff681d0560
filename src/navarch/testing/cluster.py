"""`Cluster`: what a test does with its cluster, wherever that runs."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from navarch._base.clock import SystemClock
from navarch._base.movable import MovableClock
from navarch.api import Dynamic, Object, Resource
from navarch.client import Client, Listing, connect
from navarch.client.core import FieldSelector, LabelSelector
from navarch.client.target import Readable
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.equipment import Equipment
from navarch.cluster.embedded.kubeconfig import Access
from navarch.cluster.embedded.served import ThreadedCluster
from navarch.cluster.server.pipeline.audit.log import AuditLog
from navarch.errors import InvalidValueError
from navarch.operator import Operator, needed_by, roles_of, serve
from navarch.operator.crds import prepare_crds
from navarch.testing.eventually import Eventually

T = TypeVar("T")
W = TypeVar("W", bound=Object | Dynamic)


@asynccontextmanager
async def in_process(equipment: Equipment | None = None) -> AsyncIterator[Cluster]:
    """A fresh cluster without a network; its time can be moved, unless it has programs to run."""
    clock = SystemClock() if equipment is not None and equipment.nodes else MovableClock()
    async with EmbeddedCluster(clock=clock, equipment=equipment) as embedded:
        yield Cluster(embedded.client(), embedded)


@asynccontextmanager
async def over_https(equipment: Equipment | None = None) -> AsyncIterator[Cluster]:
    """A fresh cluster over HTTPS on loopback; clients that block may use it too."""
    with ThreadedCluster(partial(EmbeddedCluster, equipment=equipment)) as threaded:
        engine = _Threaded(threaded)
        async with connect(threaded.access.config()) as client:
            try:
                yield Cluster(client, engine, threaded.access)
            finally:
                await engine.close()


class _Threaded:
    """A cluster in another thread, as if it were in this one."""

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
        """Closes the clients that were given out."""
        for client in self._clients:
            await client.close()


class Engine(Protocol):
    """A running cluster as `Cluster` needs it."""

    @property
    def audit(self) -> AuditLog:
        """Every request that was answered."""
        ...

    async def revision(self) -> int:
        """How far the store has got."""
        ...

    async def changed_since(self, revision: int) -> int:
        """Returns how far the store has got once something was written after `revision`."""
        ...

    async def compact(self, revision: int) -> None:
        """Forgets what happened before that revision."""
        ...

    def token_of(self, name: str, *groups: str) -> str:
        """A new token that proves this user."""
        ...

    def client_with(self, token: str, namespace: str) -> Client:
        """A client of whoever the token proves."""
        ...


class Cluster:
    """A cluster of one test: the administrator's verbs, operators that run on it, and waiting for what they do.

    `client` has every other verb; its namespace is `default`. `access` says how others reach it, if it is served over
    HTTPS; it is None for one without a network.
    """

    def __init__(self, client: Client, engine: Engine, access: Access | None = None) -> None:
        self.client = client
        self.access = access
        self._engine = engine

    @property
    def audit(self) -> AuditLog:
        """Who asked for what, and what came of it: `cluster.audit.records(verb="delete")`."""
        return self._engine.audit

    def client_as(self, name: str, *groups: str, namespace: str = "default") -> Client:
        """A client of somebody else, who may do what RBAC gives them: a user, or a ServiceAccount as
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
        """A client that may do what the operator's declarations need, and no more: `run(operator, client=...)`.

        Its rights are those of `roles_of(..., needed_by(operator, ...))`, given to a ServiceAccount of the operator's name.
        """
        namespace = self.client.options.namespace
        place = (operator.election.namespace or namespace) if operator.election else None
        account = f"system:serviceaccount:{namespace}:{operator.name}"
        for role in roles_of(operator.name, needed_by(operator, election_namespace=place), account):
            await self.client.apply(Dynamic(role), force=True)
        return self.client_as(account, namespace=namespace)

    async def pass_time(self, seconds: float) -> None:
        """Lets so much time pass in a moment, for the operators and for the cluster: what was to come by then has begun.

        Raises `InvalidValueError` for a cluster with process nodes, or over HTTPS: their time is the machine's own.
        """
        clock = self.client.clock
        if not isinstance(clock, MovableClock):
            raise InvalidValueError(
                "expected a cluster in the test's own process, without process nodes: programs and connections have the "
                "machine's own time; use the fixture `cluster`, and simulated nodes"
            )
        await clock.advance(seconds)

    async def compact(self, resource_version: str) -> None:
        """Lets the cluster forget what happened before that version, as Kubernetes does after some minutes: whoever
        watches or lists from an older one is told that it is gone.
        """
        await self._engine.compact(int(resource_version))

    @asynccontextmanager
    async def run(self, *operators: Operator, client: Client | None = None) -> AsyncIterator[None]:
        """Runs the operators while the block lasts. When it begins, their kinds are served.

        They are the administrator unless they are given a client: one with fewer rights, or one that fails now and then.
        Their endpoints are not served: several replicas, and several tests at once, would want the same ports. Raises what an operator or the block fails with; when the block ends, they have finished what was under way.
        """
        __tracebackhide__ = True  # the test's own line is what pytest shows
        served = [_without_endpoints(operator) for operator in operators]
        for operator in operators:
            kinds = [each.primary for each in operator.controllers if issubclass(each.primary, Resource)]
            await prepare_crds(self.client.using(manager=operator.name), kinds, operator.crds)
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(serve(client or self.client, *served), name="operators")
                try:
                    yield
                finally:
                    running.cancel()
        except BaseExceptionGroup as failures:  # a test that fails is shown by its own line, not by a group
            failure = _alone(failures)
            raise failure from failure.__cause__

    async def eventually(
        self,
        read: Callable[[], Awaitable[T]],
        holds: Callable[[T], Any],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - it goes by the client's clock, and says what was awaited
        what: str = "",
    ) -> T:
        """What `read` gives, once it `holds`; looked at again whenever something is written to the cluster.

        What is not found, or lacks what `holds` looks at, does not hold yet. Raises `AssertionError` after `timeout`
        seconds, saying what was awaited (in the words of `what`, if given) and what was there instead.
        """
        __tracebackhide__ = True
        return await Eventually(self._engine, self.client.clock, read, holds, what).until_it_holds(timeout)


def _without_endpoints(operator: Operator) -> Operator:
    twin = copy.copy(operator)
    twin.endpoints = None
    return twin


def _alone(failure: BaseException) -> BaseException:
    """The one that failed; several stay a group."""
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    return failure
