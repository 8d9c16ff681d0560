"""Putting a controller together from what was declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from navarch.api import Key, Kind
from navarch.cache import Cache, Change, Collection, as_cached
from navarch.client import Client
from navarch.controller.causes import Causes
from navarch.controller.controller import Controller, ControllerParts
from navarch.controller.declared import Declared
from navarch.controller.events import Recorder
from navarch.controller.finalizers import Finalizer, finalizer_name
from navarch.controller.invoke import Threads
from navarch.controller.lookup import Lookup
from navarch.controller.loops import LoopDetector, LoopReport, log_loop
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
    metrics: Metrics

    def assemble(self, declared: Declared[Any]) -> Assembled:
        """The controller, with its triggers in place: from now on its queue fills."""
        queue, collections = self._queue(declared), self._collections(declared)
        causes: Causes = Causes()
        controller = Controller(
            self._parts(declared, queue, collections, causes),
            concurrency=declared.options.concurrency,
            timeout=declared.options.timeout,
        )
        triggers = Triggers(self._full_name(declared), declared.kind, queue, causes)
        return Assembled(controller, queue, _attach(declared, queue, collections, triggers))

    def _full_name(self, declared: Declared[Any]) -> str:
        """Tells controllers of different operators in one process apart, also as managers of fields."""
        return f"{self.operator.name}/{declared.name}"

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
        self,
        declared: Declared[Any],
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
            reach=self._reach(declared, queue, collections, loops),
            primary=declared.primary,
            collection=collections[declared.kind],
            queue=queue,
            handlers=self._handlers(declared, threads),
            threads=threads,
            loops=loops,
            causes=causes,
            metrics=metrics,
        )

    def _reach(
        self,
        declared: Declared[Any],
        queue: WorkQueue[Key],
        collections: Mapping[Kind, Collection[Any]],
        loops: LoopDetector,
    ) -> Reach:
        return Reach(
            controller=self._full_name(declared),
            client=self.client.using(manager=self._full_name(declared)),
            collections=collections,
            owned=declared.owned(),
            recorder=self.recorder,
            clock=self.client.clock,
            retract=queue.retract,
            on_write=loops.wrote,
        )

    def _handlers(self, declared: Declared[Any], threads: Threads) -> Handlers:
        name = declared.options.finalizer or finalizer_name(self.operator.name, declared.name, declared.kind)
        cleanup = declared.on_deletion
        return Handlers(
            reconcile=threads.awaitable(declared.reconcile),
            cleanup=None if cleanup is None else threads.awaitable(cleanup),
            finalizer=Finalizer(name),
        )


def _report_loop(metrics: ControllerMetrics, report: LoopReport) -> None:
    metrics.self_triggered()
    log_loop(report)


def _attach(
    declared: Declared[Any], queue: WorkQueue[Key], collections: Mapping[Kind, Collection[Any]], triggers: Triggers
) -> Callable[[], None]:
    """Lets changes and triggers fill the queue, until what is returned is called."""
    subscriptions = list(_subscriptions(declared, collections, triggers))
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


def _subscriptions(
    declared: Declared[Any], collections: Mapping[Kind, Collection[Any]], triggers: Triggers
) -> Iterator[tuple[Collection[Any], Callable[[Change], None]]]:
    primary, lookup = collections[declared.kind], Lookup(collections)
    yield primary, triggers.on_primary(primary, declared.options.when)
    for owned in declared.options.owns:
        collection = collections[as_cached(owned).kind]
        yield collection, triggers.on_owned(collection)
    for watched, mapper in declared.options.watches.items():
        collection = collections[as_cached(watched).kind]
        yield collection, triggers.on_mapped(collection, mapper, lookup)
