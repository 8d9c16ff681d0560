"""`Controller`: workers that take keys from a queue and reconcile them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

from navarch._base.deadlines import Deadlines
from navarch._base.tasks import is_cancelled
from navarch.api import Key, Object
from navarch.cache import Collection, Entry, Namespaces
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.deps import ControllerDeps
from navarch.controller.detectors import LoopDetector, MisuseDetector
from navarch.controller.outcomes import Outcomes
from navarch.controller.reconciliation import Handlers, Reconciliation, Threads
from navarch.controller.status import mark_mismatch
from navarch.controller.triggers import Causes, Writer
from navarch.errors import DecodeError, QueueClosedError
from navarch.observe import logs, traces
from navarch.observe.metrics import ControllerMetrics, Outcome
from navarch.queue import Work, WorkQueue

__all__ = ["Controller", "ControllerParts"]

_TURN_SECONDS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerParts:
    """The parts of a controller.

    `namespaces` are those that the operator selects, None if all: the collection may be shared with operators that select more.
    """

    name: str
    deps: ControllerDeps
    primary: type[Object]
    collection: Collection[Any]
    queue: WorkQueue[Key]
    handlers: Handlers
    threads: Threads
    loops: LoopDetector
    causes: Causes
    metrics: ControllerMetrics
    namespaces: Namespaces | None


class Controller:
    """Reconciles objects of one kind, `concurrency` at a time, each for at most `timeout` seconds.

    `run` works until it is cancelled; the keys of cancelled reconciles return to the queue. `drain` starts no more reconciles
    and waits for those under way.
    """

    def __init__(self, parts: ControllerParts, *, concurrency: int, timeout: float) -> None:
        self._parts = parts
        self._concurrency = concurrency
        self._clock = parts.deps.clock
        self._queue = parts.queue
        self._rng = parts.deps.client.rng
        self._turned_at = 0.0
        self._deadlines = Deadlines(self._clock, timeout)
        self._reconciliation = Reconciliation(parts.deps, parts.collection, parts.handlers, self._deadlines)
        self._outcomes = Outcomes(parts.queue, parts.deps.recorder, self._clock)
        self._misuse = MisuseDetector(parts.name, parts.deps.collections.values())
        self._log = logs.logger("navarch.controller").bind(controller=parts.name)

    @property
    def name(self) -> str:
        """The controller's name."""
        return self._parts.name

    async def run(self) -> None:
        """Works until it is cancelled, or until the queue is closed."""
        async with asyncio.TaskGroup() as group:
            limits = group.create_task(self._deadlines.run(), name=f"{self.name}: time limits")
            workers = [group.create_task(self._work(), name=f"{self.name}: worker") for _ in range(self._concurrency)]
            await asyncio.wait(workers)
            limits.cancel()

    async def drain(self) -> None:
        """Starts no more reconciles; returns when those under way have ended."""
        self._queue.close()
        try:
            await self._queue.drained()
        finally:
            self._parts.threads.close()

    async def _work(self) -> None:
        while True:
            try:
                work = await self._queue.get()
            except QueueClosedError:
                return
            try:
                await self._take(work)
            finally:
                self._parts.threads.when_free(work.key, partial(self._queue.done, work.key))
            if is_cancelled():  # the reconciler was told to end, and has kept it to itself
                raise asyncio.CancelledError
            await self._let_others_run()

    async def _let_others_run(self) -> None:
        """Yields to the event loop: reconciles that never wait would otherwise block every other task."""
        now = self._clock.monotonic()
        if now - self._turned_at > _TURN_SECONDS:
            await self._clock.sleep(0)
            self._turned_at = self._clock.monotonic()

    async def _take(self, work: Work[Key]) -> None:
        entry = self._parts.collection.entry(work.key)
        if entry is None or not self._selects(work.key.namespace):
            self._outcomes.forget(work.key)
            self._parts.deps.apply_cache.forget(work.key)
            self._parts.deps.reads.forget(work.key)
            self._parts.causes.take(work.key)
            return
        started = self._clock.monotonic()
        self._parts.metrics.started()
        try:
            outcome = await self._attempt(entry, work)
        except asyncio.CancelledError:
            self._parts.metrics.cancelled()
            self._queue.add(work.key, reason="it was interrupted")
            raise
        except Exception as error:  # noqa: BLE001 - whatever was overlooked, the worker goes on
            outcome = self._outcomes.raised(work.key, error, None, self._log.bind(object=str(work.key)))
        self._parts.metrics.finished(outcome, self._clock.monotonic() - started)

    def _selects(self, namespace: str) -> bool:
        return self._parts.namespaces is None or self._parts.namespaces.match(namespace)

    async def _attempt(self, entry: Entry, work: Work[Key]) -> Outcome:
        parts = self._parts
        try:
            primary = parts.collection.fresh(entry)
        except DecodeError as error:
            return await self._unfit(entry, error)
        parts.loops.reconciled(parts.deps.controller, work)
        parts.deps.reads.forget(work.key)
        ctx = parts.handlers.context(parts.deps, work.key, primary, reasons=work.reasons, reconcile_id=self._new_id())
        spec = self._misuse.begin(primary)
        with logs.within(ctx.log):
            try:
                result = await self._traced(entry, primary, ctx, is_failing=work.attempt > 0)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                return self._outcomes.raised(work.key, error, primary, ctx.log)
            finally:
                ctx.close()
                self._misuse.end(spec, primary, work.key)
        if result is not None:
            parts.loops.requeued(Writer(parts.deps.controller, work.key), result.after)
        return self._outcomes.returned(work.key, result, ctx.log)

    def _new_id(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    async def _traced(self, entry: Entry, primary: Any, ctx: Context, *, is_failing: bool) -> Result | None:
        if not traces.enabled():
            return await self._reconciliation.of(entry, primary, ctx, is_failing=is_failing)
        causes, reasons = self._parts.causes.take(entry.key), "; ".join(ctx.reasons)
        with traces.span("reconcile", causes, controller=self.name, object=str(entry.key), reasons=reasons):
            return await self._reconciliation.of(entry, primary, ctx, is_failing=is_failing)

    async def _unfit(self, entry: Entry, error: DecodeError) -> Outcome:
        try:
            await mark_mismatch(self._parts.deps, entry, self._parts.primary, error)
        except Exception as second:  # noqa: BLE001 - what marks it must not stop the worker
            return self._outcomes.raised(entry.key, second, None, self._log)
        return self._outcomes.does_not_fit(entry.key, error, self._log)
