"""The work queue: keys that wait for a worker, for a time (`DelayingQueue`), or for their next attempt (`RetryBackoff`)."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import random
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import msgspec

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch._base.tasks import Waiters, within
from navarch.errors import QueueClosedError
from navarch.queue.options import NORMAL, SILENT, QueueMetrics, QueueOptions
from navarch.queue.priority_queue import PriorityQueue, QueueItem, Work, with_reason

K = TypeVar("K", bound=Hashable)

# The number of invalid entries that are kept before a rebuild is worth its cost.
_SLACK = 64


class DelayedItem(msgspec.Struct, Generic[K], eq=False):
    """One key and the time at which it is due."""

    key: K
    due: float
    priority: int
    reasons: tuple[str, ...]


class DelayingQueue(Generic[K]):
    """Orders keys by the time at which they are due. Each key has one time, the earliest that was requested."""

    def __init__(self) -> None:
        self._by_key: dict[K, DelayedItem[K]] = {}
        # A key that was dropped or became due earlier leaves an invalid entry behind: only `due` is valid.
        self._by_time: list[tuple[float, int, DelayedItem[K]]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, key: K, due: float, reason: str, priority: int) -> None:
        """Adds a key. If it is here already, the earlier time and the higher priority win, and both reasons are kept."""
        item = self._by_key.get(key)
        if item is None:
            self._by_key[key] = item = DelayedItem(key, due, priority, (reason,))
            self._push(item)
            return
        item.priority = max(item.priority, priority)
        item.reasons = with_reason(item.reasons, reason)
        if due < item.due:
            item.due = due
            self._push(item)

    def drop(self, key: K) -> None:
        """Removes the key, if it is here."""
        self._by_key.pop(key, None)

    def clear(self) -> None:
        self._by_key.clear()
        self._by_time.clear()

    def next_due(self) -> float | None:
        """Returns the time at which the first key is due; None if the queue is empty."""
        heap = self._by_time
        while heap and not self._is_valid(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> Iterator[DelayedItem[K]]:
        """Removes and yields the keys that are due, in the order of their times."""
        while (due := self.next_due()) is not None and due <= now:
            item = heapq.heappop(self._by_time)[2]
            del self._by_key[item.key]
            yield item

    def _push(self, item: DelayedItem[K]) -> None:
        if len(self._by_time) > 2 * len(self._by_key) + _SLACK:
            self._by_time = [entry for entry in self._by_time if self._is_valid(entry)]
            heapq.heapify(self._by_time)
        heapq.heappush(self._by_time, (item.due, next(self._order), item))

    def _is_valid(self, entry: tuple[float, int, DelayedItem[K]]) -> bool:
        due, _, item = entry
        return item.due == due and self._by_key.get(item.key) is item


class RetryBackoff(Generic[K]):
    """Counts the failures of each key and gives the delay before its next attempt. A key that does not fail costs
    nothing.
    """

    def __init__(self, backoff: Backoff, rng: random.Random) -> None:
        self._backoff = backoff
        self._random = rng
        self._series: dict[K, tuple[int, BackoffDelays]] = {}

    def count(self, key: K) -> int:
        """Returns how often the key failed since it was last forgotten."""
        series = self._series.get(key)
        return series[0] if series else 0

    def next_delay(self, key: K) -> float:
        """Counts one more failure and returns the delay that follows it, in seconds."""
        count, delays = self._series.get(key) or (0, BackoffDelays(self._backoff, self._random))
        self._series[key] = count + 1, delays
        return delays.next_delay()

    def forget(self, key: K) -> None:
        self._series.pop(key, None)


class WorkQueue(Generic[K]):
    """A queue of keys that wait for a worker; the package's docstring states its promises.

    Belongs to one event loop. Delayed keys need `run` to be running. Every `get` needs its `done`.
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
        # Every waiting key, once. It is in a priority level unless a worker has it.
        self._waiting: dict[K, QueueItem[K]] = {}
        self._levels: PriorityQueue[K] = PriorityQueue(options.ageing)
        # Every key that a worker has.
        self._working: dict[K, QueueItem[K]] = {}
        self._delayed: DelayingQueue[K] = DelayingQueue()
        self._failures: RetryBackoff[K] = RetryBackoff(options.backoff, rng)
        self._idle_workers = Waiters()
        self._drains = Waiters()
        self._due_sooner = asyncio.Event()
        self._closed = False

    def add(self, key: K, *, reason: str = "", token: Hashable | None = None, priority: int = NORMAL) -> None:
        """Adds the key. If a worker has it, the key waits again as soon as that worker calls `done`.

        A key that waits already waits once, with all reasons and the highest priority. A reason with a token can be
        retracted. A closed queue ignores the call.
        """
        if self._closed:
            return
        item = self._waiting.get(key)
        if item is None:
            item = self._waiting[key] = QueueItem(key, priority, self._clock.monotonic())
            if key not in self._working:
                self._enqueue(item)
            self._metrics.added()
        elif priority > item.priority:
            self._raise(item, priority)
        item.add_reason(reason, token)

    def add_after(self, key: K, seconds: float, *, reason: str = "", priority: int = NORMAL) -> None:
        """Adds the key in so many seconds; a worker that gets the key earlier makes this unnecessary.

        The earliest of several times wins. At that time the effect is that of `add`.
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
        """Removes the reason with that token; a key without any reason left is removed from the queue.

        Does nothing if there is no such reason.
        """
        item = self._waiting.get(key)
        if item is not None and not item.retract(token):
            del self._waiting[key]
            self._levels.remove(item)

    def retry(self, key: K, *, reason: str = "") -> float:
        """Adds the key again after its next backoff delay, with the priority it had. Returns the delay."""
        working = self._working.get(key)
        seconds = self._failures.next_delay(key)
        self._metrics.retried()
        self.add_after(key, seconds, reason=reason, priority=working.priority if working else NORMAL)
        return seconds

    def forget(self, key: K) -> None:
        """Resets the key's failures and delays, after a success or a deletion. The queue remembers failed keys until
        then.
        """
        self._failures.forget(key)

    async def get(self) -> Work[K]:
        """Waits for the next key and returns it; the key belongs to the caller until `done`.

        Raises QueueClosedError once the queue is closed. Cancellation loses no key: call this from the worker itself,
        not as a separate task whose result could be dropped.
        """
        while not self._levels:
            if self._closed:
                raise QueueClosedError(f"expected an open queue, got the closed queue {self.name!r}: end the worker")
            await self._idle_workers.wait()
        return self._take()

    def done(self, key: K) -> None:
        """Ends the work on the key, whether it succeeded or failed. A key that was added meanwhile waits from now on.

        Raises ValueError if no worker has the key: two workers would reconcile one key.
        """
        working = self._working.pop(key, None)
        if working is None:
            raise ValueError(
                f"expected a key that a worker has from the queue {self.name!r}, got {key}: call done once per get"
            )
        self._metrics.finished(self._clock.monotonic() - working.since)
        if (item := self._waiting.get(key)) is not None:
            self._enqueue(item)
        if not self._working:
            self._drains.wake_all()

    async def run(self) -> None:
        """Moves delayed keys into the queue when they are due; only cancellation ends it."""
        while True:
            self._due_sooner.clear()
            for delayed in self._delayed.take_due(self._clock.monotonic()):
                for reason in delayed.reasons:
                    self.add(delayed.key, reason=reason, priority=delayed.priority)
            await self._wait_for_next_due()

    def close(self) -> None:
        """Closes the queue: it drops waiting keys, and accepts and hands out none. Running work continues."""
        self._closed = True
        self._waiting.clear()
        self._levels.clear()
        self._delayed.clear()
        self._idle_workers.wake_all()

    async def drained(self) -> None:
        """Returns when no worker has a key."""
        while self._working:
            await self._drains.wait()

    @property
    def depth(self) -> int:
        """The number of waiting keys, with those whose current work must end first, without delayed ones."""
        return len(self._waiting)

    @property
    def working(self) -> tuple[K, ...]:
        """The keys that workers have."""
        return tuple(self._working)

    def unfinished_seconds(self) -> float:
        """Returns the sum of the seconds that all running work has taken so far."""
        now = self._clock.monotonic()
        return sum(now - working.since for working in self._working.values())

    def longest_running_seconds(self) -> float:
        """Returns the seconds that the longest running work has taken so far."""
        now = self._clock.monotonic()
        return max((now - working.since for working in self._working.values()), default=0.0)

    def _enqueue(self, item: QueueItem[K]) -> None:
        self._levels.put(item)
        self._idle_workers.wake_one()

    def _raise(self, item: QueueItem[K], priority: int) -> None:
        """Moves the item to the level of the higher priority; its waiting time stays."""
        item.priority = priority
        if item.level is not None:
            self._levels.remove(item)
            self._levels.put(item)

    def _take(self) -> Work[K]:
        now = self._clock.monotonic()
        item = self._levels.take(now)
        key, waited = item.key, now - item.since
        del self._waiting[key]
        self._delayed.drop(key)
        item.since = now
        self._working[key] = item
        self._metrics.taken(waited)
        tokens = tuple(item.tokens or ())
        return Work(key, item.reasons(), waited, self._failures.count(key), item.priority, tokens)

    async def _wait_for_next_due(self) -> None:
        due = self._delayed.next_due()
        if due is None:
            await self._due_sooner.wait()
            return
        with contextlib.suppress(TimeoutError):
            await within(self._clock, due - self._clock.monotonic(), self._due_sooner.wait())
