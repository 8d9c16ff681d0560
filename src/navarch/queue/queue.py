"""The queue between what happens and those who deal with it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Hashable
from typing import Generic, TypeVar

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch._base.waiters import Waiters
from navarch.errors import QueueClosedError
from navarch.queue.delayed import Delayed
from navarch.queue.failures import Failures
from navarch.queue.lanes import Lanes
from navarch.queue.metrics import SILENT, QueueMetrics
from navarch.queue.options import NORMAL, QueueOptions
from navarch.queue.work import Wanted, Work

__all__ = ["WorkQueue"]

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys that wait for a worker; the room's own text says what is promised.

    Belongs to one event loop. `run` must be running for delayed keys to come. Every `get` needs its `done`.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        rng: random.Random,
        options: QueueOptions = QueueOptions(),
        metrics: QueueMetrics = SILENT,
    ) -> None:
        self.name = name
        self._clock = clock
        self._metrics = metrics
        # Every key that is to be handed out, once. It is in a lane unless it is being worked on.
        self._wanted: dict[K, Wanted[K]] = {}
        self._lanes: Lanes[K] = Lanes(options.ageing)
        # Every key that was handed out and is not done.
        self._working: dict[K, Wanted[K]] = {}
        self._delayed: Delayed[K] = Delayed()
        self._failures: Failures[K] = Failures(options.backoff, rng)
        self._idle_workers = Waiters()
        self._drains = Waiters()
        self._due_sooner = asyncio.Event()
        self._closed = False

    def add(self, key: K, *, reason: str = "", token: Hashable | None = None, priority: int = NORMAL) -> None:
        """The key is wanted now; if it is being worked on, then again as soon as that is done.

        If it waits already, it goes on waiting once, for all reasons and with the highest priority. The reason can be taken back if it has a
        token. A closed queue takes nothing.
        """
        if self._closed:
            return
        wanted = self._wanted.get(key)
        if wanted is None:
            wanted = self._wanted[key] = Wanted(key, priority, self._clock.monotonic())
            if key not in self._working:
                self._let_wait(wanted)
            self._metrics.added()
        elif priority > wanted.priority:
            self._raise(wanted, priority)
        wanted.add_reason(reason, token)

    def add_after(self, key: K, seconds: float, *, reason: str = "", priority: int = NORMAL) -> None:
        """The key is wanted in so many seconds, or when it is next handed out for another reason if that is sooner.

        The earliest of several times holds. When it comes, it is as if `add` were called then.
        """
        if seconds <= 0:
            self.add(key, reason=reason, priority=priority)
        elif not self._closed:
            due = self._clock.monotonic() + seconds
            first = self._delayed.next_due()
            self._delayed.put(key, due, reason, priority)
            if first is None or due < first:
                self._due_sooner.set()

    def retract(self, key: K, token: Hashable) -> None:
        """Takes the reason with that token back; a key without any reason left is not handed out.

        Does nothing if there is no such reason (any more).
        """
        wanted = self._wanted.get(key)
        if wanted is not None and not wanted.retract(token):
            del self._wanted[key]
            self._lanes.strike(wanted)

    def retry(self, key: K, *, reason: str = "") -> float:
        """The key failed: it is wanted again after its next delay, which is returned, with the priority it had."""
        working = self._working.get(key)
        seconds = self._failures.next_delay(key)
        self._metrics.retried()
        self.add_after(key, seconds, reason=reason, priority=working.priority if working else NORMAL)
        return seconds

    def forget(self, key: K) -> None:
        """The key failed no more, or is gone: its delays begin anew. Keys that failed are remembered until then."""
        self._failures.forget(key)

    async def get(self) -> Work[K]:
        """The next key, which belongs to the caller until `done`; waits until there is one.

        Raises QueueClosedError once the queue is closed. Cancellation loses no key; so call it from the worker itself, not
        as a task of its own whose result could be dropped.
        """
        while not self._lanes:
            if self._closed:
                raise QueueClosedError(f"expected an open queue, got the closed queue {self.name!r}: end the worker")
            await self._idle_workers.wait()
        return self._hand_out()

    def done(self, key: K) -> None:
        """The work on the key has ended, well or not; if it was added meanwhile, it waits from now on.

        Raises ValueError if the key was not handed out: two workers would be on one key.
        """
        working = self._working.pop(key, None)
        if working is None:
            raise ValueError(
                f"expected a key that was handed out by the queue {self.name!r}, got {key}: call done once"
            )
        self._metrics.finished(self._clock.monotonic() - working.since)
        if (wanted := self._wanted.get(key)) is not None:
            self._let_wait(wanted)
        if not self._working:
            self._drains.wake_all()

    async def run(self) -> None:
        """Lets delayed keys wait when they are due; only cancellation ends it."""
        while True:
            self._due_sooner.clear()
            for later in self._delayed.take_due(self._clock.monotonic()):
                for reason in later.reasons:
                    self.add(later.key, reason=reason, priority=later.priority)
            await self._until_next_is_due()

    def close(self) -> None:
        """Nothing more is handed out or taken in; what waits is dropped, what is being worked on goes on."""
        self._closed = True
        self._wanted.clear()
        self._lanes.clear()
        self._delayed.clear()
        self._idle_workers.wake_all()

    async def drained(self) -> None:
        """Returns when no key is being worked on."""
        while self._working:
            await self._drains.wait()

    @property
    def depth(self) -> int:
        """How many keys wait, including those that wait for the end of the work on them; delayed ones do not."""
        return len(self._wanted)

    @property
    def working(self) -> tuple[K, ...]:
        """The keys that are being worked on."""
        return tuple(self._working)

    def unfinished_seconds(self) -> float:
        """How long all that is being worked on has taken so far, added up."""
        now = self._clock.monotonic()
        return sum(now - working.since for working in self._working.values())

    def longest_running_seconds(self) -> float:
        """How long the longest that is being worked on has taken so far."""
        now = self._clock.monotonic()
        return max((now - working.since for working in self._working.values()), default=0.0)

    def _let_wait(self, wanted: Wanted[K]) -> None:
        self._lanes.put(wanted)
        self._idle_workers.wake_one()

    def _raise(self, wanted: Wanted[K], priority: int) -> None:
        """A higher priority is another lane; how long it has waited stays."""
        wanted.priority = priority
        if wanted.lane is not None:
            self._lanes.strike(wanted)
            self._lanes.put(wanted)

    def _hand_out(self) -> Work[K]:
        now = self._clock.monotonic()
        wanted = self._lanes.take(now)
        key, waited = wanted.key, now - wanted.since
        del self._wanted[key]
        self._delayed.drop(key)
        wanted.since = now
        self._working[key] = wanted
        self._metrics.taken(waited)
        tokens = tuple(wanted.tokens or ())
        return Work(key, wanted.reasons(), waited, self._failures.count(key), wanted.priority, tokens)

    async def _until_next_is_due(self) -> None:
        due = self._delayed.next_due()
        if due is None:
            await self._due_sooner.wait()
            return
        with contextlib.suppress(TimeoutError):
            await within(self._clock, due - self._clock.monotonic(), self._due_sooner.wait())
