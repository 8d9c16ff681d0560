"""Putting a controller together from what was declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from navarch.api import Key, Kind
from navarch.cache import Cache, Collection, as_cached
from navarch.client import Client
from navarch.controller.controller import Controller, ControllerParts
from navarch.controller.declared import Declared
from navarch.controller.events import Recorder
from navarch.controller.finalizers import Finalizer, finalizer_name
from navarch.controller.invoke import Threads
from navarch.controller.lookup import Lookup
from navarch.controller.loops import LoopDetector
from navarch.controller.reach import Reach
from navarch.controller.reconciliation import Handlers
from navarch.controller.triggers import Triggers
from navarch.observe.metrics import ControllerMetrics, Metrics, QueueMetrics
from navarch.operator.operator import Operator
from navarch.queue import WorkQueue

__all__ = ["Assembled", "Workshop"]


@dataclass(frozen=True, slots=True)
class Assembled:
    """A controller that is ready to run; `detach` ends what its triggers are told."""

    controller: Controller
    queue: WorkQueue[Key]
    detach: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all controllers of one running operator share. `client` is the one that may write."""

    operator: Operator
    client: Client
    cache: Cache
    recorder: Recorder
    loops: LoopDetector
    metrics: Metrics

    def assemble(self, declared: Declared[Any]) -> Assembled:
        """The controller, with its triggers in place: from now on its queue fills."""
        queue, collections = self._queue(declared), self._collections(declared)
        controller = Controller(
            self._parts(declared, queue, collections),
            concurrency=declared.options.concurrency,
            timeout=declared.options.timeout,
        )
        return Assembled(controller, queue, self._attach(declared, queue, collections))

    def _queue(self, declared: Declared[Any]) -> WorkQueue[Key]:
        metrics = QueueMetrics(declared.name)
        queue: WorkQueue[Key] = WorkQueue(declared.name, self.client.clock, self.client.rng, metrics=metrics)
        metrics.source = queue
        self.metrics.add(metrics)
        return queue

    def _collections(self, declared: Declared[Any]) -> dict[Kind, Collection[Any]]:
        everything = {**declared.others(), declared.kind: declared.cached}
        return {kind: self.cache.collection(cached, self.operator.namespaces) for kind, cached in everything.items()}

    def _parts(
        self, declared: Declared[Any], queue: WorkQueue[Key], collections: Mapping[Kind, Collection[Any]]
    ) -> ControllerParts:
        metrics = ControllerMetrics(declared.name, declared.options.concurrency)
        self.metrics.add(metrics)
        threads = Threads(declared.name, declared.options.concurrency)
        return ControllerParts(
            reach=self._reach(declared, queue, collections),
            primary=declared.primary,
            collection=collections[declared.kind],
            queue=queue,
            handlers=self._handlers(declared, threads),
            threads=threads,
            loops=self.loops,
            metrics=metrics,
        )

    def _reach(
        self, declared: Declared[Any], queue: WorkQueue[Key], collections: Mapping[Kind, Collection[Any]]
    ) -> Reach:
        return Reach(
            controller=declared.name,
            client=self.client.using(manager=f"{self.operator.name}/{declared.name}"),
            collections=collections,
            owned=declared.owned(),
            recorder=self.recorder,
            clock=self.client.clock,
            retract=queue.retract,
            on_write=self.loops.wrote,
        )

    def _handlers(self, declared: Declared[Any], threads: Threads) -> Handlers:
        name = declared.options.finalizer or finalizer_name(self.operator.name, declared.name, declared.kind)
        cleanup = declared.on_deletion
        return Handlers(
            reconcile=threads.awaitable(declared.reconcile),
            cleanup=None if cleanup is None else threads.awaitable(cleanup),
            finalizer=Finalizer(name),
        )

    def _attach(
        self, declared: Declared[Any], queue: WorkQueue[Key], collections: Mapping[Kind, Collection[Any]]
    ) -> Callable[[], None]:
        triggers, lookup = Triggers(declared.name, declared.kind, queue), Lookup(collections)
        primary = collections[declared.kind]
        subscriptions = [(primary, triggers.on_primary(primary, declared.options.when))]
        for owned in declared.options.owns:
            collection = collections[as_cached(owned).kind]
            subscriptions.append((collection, triggers.on_owned(collection)))
        for watched, mapper in declared.options.watches.items():
            collection = collections[as_cached(watched).kind]
            subscriptions.append((collection, triggers.on_mapped(collection, mapper, lookup)))
        for collection, subscriber in subscriptions:
            collection.subscribe(subscriber)

        def trigger(key: Key, reason: str) -> None:
            queue.add(key, reason=reason)

        declared.listen(trigger)

        def detach() -> None:
            declared.unlisten(trigger)
            for collection, subscriber in subscriptions:
                collection.unsubscribe(subscriber)

        return detach
