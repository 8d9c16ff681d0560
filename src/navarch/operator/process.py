"""A running operator: what starts in which order, and how it stops."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.tasks import cancel_and_wait, is_cancelled, within
from navarch.api import Kind, Resource
from navarch.cache import Cache, Informer
from navarch.client import Client, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.controller.builder import ControllerBuilder
from navarch.controller.election import Election
from navarch.controller.events import Recorder
from navarch.controller.fence import FencedTransport
from navarch.errors import DefinitionError, NavarchError, NotFound
from navarch.observe import traces
from navarch.observe.metrics import (
    CacheMetrics,
    CacheSize,
    LeaderMetrics,
    LoopMetrics,
    Metrics,
    RequestMetrics,
    WatchStatus,
)
from navarch.operator.crds import prepare_crds
from navarch.operator.declarations import Background, DeclaredOperator
from navarch.operator.endpoints import Check, Endpoints
from navarch.operator.foreign_kinds import INSTALL_THEM, foreign_kinds, missing_kinds
from navarch.operator.permissions import Permission, check_permissions, missing_permissions, needed_by
from navarch.operator.watchdog import Watchdog

if TYPE_CHECKING:
    from navarch.operator.endpoint_server import EndpointServer
    from navarch.operator.webhooks import ServedWebhooks


class InstrumentedTransport(WrappedTransport):
    """Counts and traces every request."""

    def __init__(self, transport: Transport, metrics: RequestMetrics) -> None:
        super().__init__(transport)
        self._metrics = metrics

    async def send(self, request: Request) -> Response:
        """See `Transport`."""
        with traces.request(request.method, request.path) as span:
            try:
                response = await self._transport.send(request)
            except NavarchError:
                self._metrics.unanswered(request.method)
                raise
            self._metrics.answered(request.method, response.status)
            span.set(code=response.status)
            return response


_log = logging.getLogger("navarch.operator")
_NAMESPACES = Kind("", "v1", "Namespace", plural="namespaces", namespaced=False)
_STALE_SECONDS = 60.0
_PATIENCE = 10.0
_AGAIN = Backoff(initial=1.0, maximum=60.0)


async def serve(
    client: Client,
    *operators: DeclaredOperator,
    cache: Cache | None = None,
    prepared: asyncio.Event | None = None,
    metrics: Metrics | None = None,
) -> None:
    """Runs the operators, which share one cache, until it is cancelled.

    A given `cache` may have other readers; it runs here. `prepared` is set when CRDs and webhooks are in place. Given `metrics`
    get the sources of all operators, in place of metrics of each. Raises `ConfigError`, `MissingPermissionsError` or
    `DefinitionError` if an operator cannot start.
    """
    _refuse_twins(operators)
    _refuse_idle(operators)
    requests, lag = RequestMetrics(client.host), LoopMetrics()
    client = client.through(lambda transport: InstrumentedTransport(transport, requests))
    cache = cache or Cache(client, client.clock, client.rng)
    processes = [Process(operator, client, cache, requests, lag, metrics=metrics) for operator in operators]
    async with AsyncExitStack() as serving:
        for process in processes:
            await process.prepare(serving)
        if prepared is not None:
            prepared.set()
        await _run(processes, cache, lag)


async def _run(processes: list[Process], cache: Cache, lag: LoopMetrics) -> None:
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(cache.run(), name="cache")
        watching = group.create_task(Watchdog(metrics=lag).run(), name="watchdog")
        running = [group.create_task(process.run(), name=process.operator.name) for process in processes]
        try:
            await asyncio.wait(running)
        finally:  # the cache goes last: what is under way still reads from it
            await cancel_and_wait(*running)
            keeping.cancel()
            watching.cancel()


class Process:
    """One run of one operator: `prepare` once, then `run`."""

    def __init__(
        self,
        operator: DeclaredOperator,
        client: Client,
        cache: Cache,
        requests: RequestMetrics,
        lag: LoopMetrics,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self.operator = operator
        self._client = client
        self._clock = client.clock
        self._cache = cache
        self._metrics = metrics or Metrics(operator.endpoints.registry if operator.endpoints else None)
        self._election = (
            Election(client, operator.election, client.clock.liveness, client.rng) if operator.election else None
        )
        self._recorder = Recorder(client, operator.name, self._instance(), client.clock, client.rng)
        builder = ControllerBuilder(
            operator.name,
            operator.namespaces,
            operator.reporters,
            self._writing(),
            cache,
            self._recorder,
            self._metrics,
        )
        self._controllers = [builder.build(declared) for declared in operator.controllers]
        for part in (requests, lag, CacheMetrics(self._watched, self._kept)):
            self._metrics.add(part)
        self._webhooks = self._served_webhooks() if operator.admission_webhooks or operator.conversions else None
        if self._election is not None:
            self._metrics.add(LeaderMetrics(operator.name, partial(getattr, self._election, "leading")))

    def _served_webhooks(self) -> ServedWebhooks:
        from navarch.operator.webhooks import ServedWebhooks  # noqa: PLC0415 - most operators have none

        return ServedWebhooks(self.operator, self._client, self._cache, self._metrics, self._election)

    def _instance(self) -> str:
        return self._election.identity if self._election else socket.gethostname()

    def _writing(self) -> Client:
        """Returns the client of the reconcilers: with an election, it writes only while this process leads."""
        election = self._election
        if election is None:
            return self._client
        return self._client.through(lambda transport: FencedTransport(transport, election.fence))

    async def prepare(self, serving: AsyncExitStack) -> None:
        """Checks the permissions, serves the webhooks until `serving` ends, prepares CRDs, and warns of missing
        kinds and namespaces.
        """
        operator = self.operator
        if operator.check_permissions:
            place = self._election.namespace if self._election else None
            needed = needed_by(operator, election_namespace=place, webhook_namespace=self._client.options.namespace)
            await check_permissions(self._client.using(manager=operator.name), needed)
        if self._webhooks is not None:
            await serving.enter_async_context(self._webhooks.serving())
        customs = [declared.primary for declared in operator.controllers if issubclass(declared.primary, Resource)]
        sections: dict[str, dict[str, Any]] = {}
        if self._webhooks is not None:
            customs += self._webhooks.converted
            sections = self._webhooks.conversion_sections()
        await prepare_crds(self._client.using(manager=operator.name), customs, operator.crds, sections)
        if self._webhooks is not None:
            await self._webhooks.prepare()
        await self._warn_of_missing_kinds()
        await self._warn_of_missing_namespaces()

    async def _warn_of_missing_kinds(self) -> None:
        """Warns of kinds of other projects that are not there yet: the controllers wait for them, and only the watches tell it."""
        if self.operator.crds == "ignore":
            return
        try:
            missing = await missing_kinds(self._client, foreign_kinds(self.operator))
        except NavarchError as error:
            _log.debug("%s: cannot tell whether kinds of other projects are there: %s", self.operator.name, error)
            return
        if missing:
            _log.warning(
                "%s: waits for CRDs of other projects, which are missing: %s; %s. The operator goes on once they are there",
                self.operator.name,
                ", ".join(map(str, missing)),
                INSTALL_THEM,
            )

    async def _warn_of_missing_namespaces(self) -> None:
        """Warns of a namespace that does not exist, such as a misspelt one, if the operator may get namespaces."""
        for name in sorted(self.operator.namespaces.names or ()):
            if not await self._may_get_namespace(name):
                continue
            try:
                await self._client.get(_NAMESPACES, name)
            except NotFound:
                _log.warning(
                    "%s: namespace %s does not exist; nothing is reconciled in it until it is created. Check namespaces=",
                    self.operator.name,
                    name,
                )
            except NavarchError as error:
                _log.debug("%s: cannot tell whether namespace %s exists: %s", self.operator.name, name, error)

    async def _may_get_namespace(self, name: str) -> bool:
        """Asks for the permission first: a refused request would be in the audit log."""
        try:
            return not await missing_permissions(self._client, [Permission("get", "", "namespaces", namespace=name)])
        except NavarchError:
            return False

    async def run(self) -> None:
        """Runs until it is cancelled; then ends reconciles under way and releases everything."""
        for wired in self._controllers:
            wired.attach()
        try:
            async with asyncio.TaskGroup() as group:
                services = [
                    group.create_task(work, name=f"{self.operator.name}: {name}") for name, work in self._services()
                ]
                try:
                    await asyncio.Event().wait()
                finally:
                    await self._drain()
                    await cancel_and_wait(*services)
        finally:
            for wired in self._controllers:
                wired.detach()

    def _services(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        yield "events", self._recorder.run()
        for wired in self._controllers:
            yield f"queue of {wired.controller.name}", wired.queue.run()
        if self._webhooks is not None:
            yield from self._webhooks.services()
        if self.operator.endpoints is not None:
            yield "endpoints", self._endpoints(self.operator.endpoints).run()
        if self._election is None:
            yield "controllers", self._work()
        else:
            yield "election", self._election.run()
            yield "controllers", self._election.lead(self._work)

    async def _work(self) -> None:
        """Runs the controllers and background functions while this process leads."""
        await self._synced()
        async with asyncio.TaskGroup() as group:
            for wired in self._controllers:
                group.create_task(wired.controller.run(), name=wired.controller.name)
            for background in self.operator.backgrounds:
                group.create_task(self._keep_running(background), name=_name(background))

    async def _keep_running(self, background: Background) -> None:
        """Restarts a background function with growing delays, which start over after a long run."""
        delays, client = BackoffDelays(_AGAIN, self._client.rng), self._writing().using(manager=self.operator.name)
        while True:
            began = self._clock.monotonic()
            try:
                return await background(client)
            except (Exception, SystemExit, asyncio.CancelledError) as error:  # a user's function may raise anything
                if is_cancelled():
                    raise asyncio.CancelledError from error
                failure = error
            if self._clock.monotonic() - began > _AGAIN.maximum:
                delays.reset()
            delay = delays.next_delay()
            _log.error("%s failed; it begins anew in %.0f s", _name(background), delay, exc_info=failure)
            await self._clock.sleep(delay)

    async def _synced(self) -> None:
        """Waits until every informer has listed once; logs every ten seconds what it waits for."""
        while True:
            try:
                return await within(self._clock, _PATIENCE, self._cache.wait_synced())
            except TimeoutError:
                waiting = [
                    f"{each.name} ({each.error or 'listing'})" for each in self._cache.informers() if not each.synced
                ]
                _log.warning("%s: waits for the first list of %s", self.operator.name, ", ".join(waiting))

    async def _drain(self) -> None:
        """Starts no more reconciles, and gives those under way their time."""
        if under_way := ", ".join(self._unfinished()):
            seconds = self.operator.drain_seconds
            _log.info("%s: stops; these have up to %g s to end: %s", self.operator.name, seconds, under_way)
        try:
            await within(self._clock, self.operator.drain_seconds, self._drained())
        except TimeoutError:
            seconds, left = self.operator.drain_seconds, ", ".join(self._unfinished())
            _log.warning("%s: did not end within %g s and are given up: %s", self.operator.name, seconds, left)

    def _unfinished(self) -> Iterator[str]:
        for wired in self._controllers:
            yield from (f"{wired.controller.name} of {key}" for key in wired.queue.working)

    async def _drained(self) -> None:
        async with asyncio.TaskGroup() as group:
            for wired in self._controllers:
                group.create_task(wired.controller.drain())

    # What is seen from outside

    def _endpoints(self, options: Endpoints) -> EndpointServer:
        from navarch.operator.endpoint_server import EndpointServer  # noqa: PLC0415 - aiohttp's server takes memory

        ready: dict[str, Check] = {"watches": self._stale_watches}
        if self._election is not None:
            ready["election"] = self._election_trouble
        return EndpointServer(
            options, alive={}, ready=ready, metrics=self._metrics, client=self._client, clock=self._clock
        )

    def _stale_watches(self) -> str | None:
        """Returns the watches without a sign of life for a minute; each gets one about twice a minute.

        The first list of a kind that the operator converts does not count: the API server may need this replica's webhook
        for it, and a Service leads only to replicas that are ready.
        """
        converted = {pair.old.__kind__.resource for pair in self.operator.conversions}
        watched = (each for each in self._cache.informers() if each.synced or each.kind.resource not in converted)
        late = map(_why_late, watched)
        return "; ".join(filter(None, late)) or None

    def _election_trouble(self) -> str | None:
        assert self._election is not None
        return self._election.trouble or None

    def _watched(self) -> Iterator[WatchStatus]:
        for each in self._cache.informers():
            yield WatchStatus(each.kind.resource, each.scope, each.state.value, each.staleness())

    def _kept(self) -> Iterator[CacheSize]:
        for collection in self._cache.collections():
            yield CacheSize(
                collection.kind.resource, collection.cached.scope, len(collection.store), collection.store.bytes
            )


def _refuse_twins(operators: tuple[DeclaredOperator, ...]) -> None:
    """Raises `DefinitionError` for two operators of one name: they would share a Lease, and one would never work."""
    names = [operator.name for operator in operators]
    if not names or len(set(names)) < len(names):
        raise DefinitionError(f"expected one or more operators with different names, got {names}; give each its own")


def _refuse_idle(operators: tuple[DeclaredOperator, ...]) -> None:
    """Raises `DefinitionError` for an operator without controllers, webhooks and background functions."""
    for operator in operators:
        if not (operator.controllers or operator.backgrounds or operator.admission_webhooks or operator.conversions):
            raise DefinitionError(
                f"operator {operator.name}: expected something to run, got no controller, webhook or background function; "
                f"import the modules that declare them before it runs"
            )


def _why_late(informer: Informer) -> str:
    """Returns why the informer is late; empty if it is not."""
    cause = f" ({informer.error})" if informer.error else ""
    if not informer.synced:
        return f"{informer.name} was not listed yet{cause}"
    if informer.staleness() > _STALE_SECONDS:
        return f"{informer.name} has not heard from the server for {informer.staleness():.0f} s{cause}"
    return ""


def _name(background: Background) -> str:
    return getattr(background, "__qualname__", repr(background))
