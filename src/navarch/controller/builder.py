"""`ControllerBuilder`: wires a declared controller to its queue, its triggers and its collections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from navarch._base.threads import is_plain
from navarch.api import Key, Kind
from navarch.cache import Cache, Change, Collection, Namespaces, as_cached
from navarch.cache.lookup import Lookup
from navarch.client import Client
from navarch.controller.context import Context, ThreadContext
from navarch.controller.controller import Controller, ControllerParts
from navarch.controller.declaration import Declared
from navarch.controller.deps import ControllerDeps
from navarch.controller.detectors import LoopDetector, LoopReport, log_loop
from navarch.controller.events import Recorder
from navarch.controller.reconciliation import Finalizer, Handlers, Threads, finalizer_name
from navarch.controller.triggers import Causes, ReadTracker, Triggers
from navarch.observe.metrics import ControllerMetrics, Metrics, WorkQueueMetrics
from navarch.queue import LOW, QueueOptions, WorkQueue

__all__ = ["ControllerBuilder", "WiredController"]

Subscriptions = Iterator[tuple[Collection[Any], Callable[[Change], None]]]


class NamespaceTrigger:
    """Reconciles the objects of a namespace that the operator begins to select while it runs."""

    def __init__(self, collection: Collection[Any], namespaces: Namespaces, queue: WorkQueue[Key]) -> None:
        self.namespaces = namespaces
        self._collection = collection
        self._queue = queue
        self._before = Namespaces(*namespaces.patterns)

    def changed(self) -> None:
        """Adds the objects of the namespaces that the operator selects now and did not select before."""
        before, self._before = self._before, Namespaces(*self.namespaces.patterns)
        for entry in self._collection.entries():
            namespace = entry.key.namespace
            if self._before.match(namespace) and not before.match(namespace):
                self._queue.add(entry.key, reason="the operator selects its namespace now", priority=LOW)


class WiredController:
    """A controller that is ready to run, with the subscriptions that fill its queue between `attach` and `detach`."""

    def __init__(
        self,
        controller: Controller,
        queue: WorkQueue[Key],
        declared: Declared[Any, Any],
        subscriptions: Subscriptions,
        returning: NamespaceTrigger,
    ) -> None:
        self.controller = controller
        self.queue = queue
        self._declared = declared
        self._subscriptions = tuple(subscriptions)
        self._returning = returning
        self._trigger: Callable[[Key, str], None] | None = None

    def attach(self) -> None:
        """Subscribes the queue to changes in the cache and to triggers."""
        for collection, subscriber in self._subscriptions:
            collection.subscribe(subscriber)
        self._returning.namespaces.listen(self._returning.changed)
        self._trigger = partial(_trigger, asyncio.get_running_loop(), self.queue)
        self._declared.listen(self._trigger)

    def detach(self) -> None:
        """Ends all subscriptions."""
        for collection, subscriber in self._subscriptions:
            collection.unsubscribe(subscriber)
        if self._trigger is not None:
            self._returning.namespaces.unlisten(self._returning.changed)
            self._declared.unlisten(self._trigger)


def _trigger(loop: asyncio.AbstractEventLoop, queue: WorkQueue[Key], key: Key, reason: str) -> None:
    """Adds the key on the event loop: the caller may be in another thread."""
    loop.call_soon_threadsafe(partial(queue.add, key, reason=reason))


@dataclass(frozen=True, slots=True)
class ControllerBuilder:
    """Builds the controllers of one running operator, which share a client that may write, a cache and a recorder.

    `reporters` has, by the name of a controller, the reporting controller of its events where that is not the operator.
    """

    operator: str
    namespaces: Namespaces
    reporters: Mapping[str, str]
    client: Client
    cache: Cache
    recorder: Recorder
    metrics: Metrics

    def build(self, declared: Declared[Any, Any]) -> WiredController:
        """Returns the controller with its triggers; nothing happens before it is attached and run."""
        queue, collections = self._queue(declared), self._collections(declared)
        causes: Causes = Causes()
        parts = self._parts(declared, queue, collections, causes)
        controller = Controller(
            parts,
            concurrency=declared.options.concurrency,
            timeout=declared.options.timeout,
        )
        triggers = Triggers(self._full_name(declared), collections[declared.kind], queue, causes)
        returning = NamespaceTrigger(collections[declared.kind], self.namespaces, queue)
        subscriptions = _subscriptions(declared, collections, triggers, parts.deps.reads)
        return WiredController(controller, queue, declared, subscriptions, returning)

    def _full_name(self, declared: Declared[Any, Any]) -> str:
        """Returns the field manager: unique among the operators of one process."""
        return f"{self.operator}/{declared.name}"

    def _queue(self, declared: Declared[Any, Any]) -> WorkQueue[Key]:
        metrics = WorkQueueMetrics(declared.name)
        queue: WorkQueue[Key] = WorkQueue(
            declared.name,
            self.client.clock,
            self.client.rng,
            QueueOptions(backoff=declared.options.backoff),
            metrics=metrics,
        )
        metrics.source = queue
        self.metrics.add(metrics)
        return queue

    def _collections(self, declared: Declared[Any, Any]) -> dict[Kind, Collection[Any]]:
        everything = declared.everything().items()
        return {kind: self.cache.collection(cached, self.namespaces) for kind, cached in everything}

    def _parts(
        self,
        declared: Declared[Any, Any],
        queue: WorkQueue[Key],
        collections: Mapping[Kind, Collection[Any]],
        causes: Causes,
    ) -> ControllerParts:
        metrics = ControllerMetrics(declared.name, declared.options.concurrency)
        self.metrics.add(metrics)
        threads = Threads(declared.name, declared.options.concurrency)
        loops = LoopDetector(self.client.clock, report=partial(_report_loop, metrics))
        return ControllerParts(
            name=declared.name,
            deps=self._deps(declared, queue, collections, loops),
            primary=declared.primary,
            collection=collections[declared.kind],
            queue=queue,
            handlers=self._handlers(declared, threads),
            threads=threads,
            loops=loops,
            causes=causes,
            metrics=metrics,
            namespaces=self._selected(declared),
        )

    def _selected(self, declared: Declared[Any, Any]) -> Namespaces | None:
        """Returns the operator's namespaces, unless the controller declares its own, or its kind has none."""
        is_own = declared.kind.namespaced and declared.cached.namespaces is None
        return self.namespaces if is_own else None

    def _deps(
        self,
        declared: Declared[Any, Any],
        queue: WorkQueue[Key],
        collections: Mapping[Kind, Collection[Any]],
        loops: LoopDetector,
    ) -> ControllerDeps:
        return ControllerDeps(
            controller=self._full_name(declared),
            client=self.client.using(manager=self._full_name(declared)),
            collections=collections,
            owned=declared.owned(),
            recorder=self.recorder,
            clock=self.client.clock,
            retract=queue.retract,
            on_write=loops.wrote,
            note_of=loops.note_of,
            reads=ReadTracker(declared.only_read()),
            reporter=self.reporters.get(declared.name, ""),
        )

    def _handlers(self, declared: Declared[Any, Any], threads: Threads) -> Handlers:
        name = finalizer_name(self.operator, declared.name, declared.kind)
        cleanup = declared.on_deletion
        return Handlers(
            reconcile=threads.awaitable(declared.reconcile),
            cleanup=None if cleanup is None else threads.awaitable(cleanup),
            finalizer=None if cleanup is None else Finalizer(name),
            until_gone=declared.options.until_gone,
            context=ThreadContext if any(map(is_plain, filter(None, (declared.reconcile, cleanup)))) else Context,
        )


def _report_loop(metrics: ControllerMetrics, report: LoopReport) -> None:
    metrics.self_triggered()
    log_loop(report)


def _subscriptions(
    declared: Declared[Any, Any], collections: Mapping[Kind, Collection[Any]], triggers: Triggers, reads: ReadTracker
) -> Subscriptions:
    primary, lookup = collections[declared.kind], Lookup(collections)
    yield primary, triggers.on_primary(primary, declared.options.when)
    for owned in declared.options.owns:
        collection = collections[as_cached(owned).kind]
        yield collection, triggers.on_owned(collection)
    for watched, mapper in declared.options.watches.items():
        collection = collections[as_cached(watched).kind]
        yield collection, triggers.on_mapped(collection, mapper, lookup)
    for kind in declared.only_read():
        yield collections[kind], triggers.on_read(collections[kind], reads)
