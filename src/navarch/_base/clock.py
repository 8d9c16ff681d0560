"""The injected clock: a test or a simulation replaces it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time and sleeps."""

    def now(self) -> datetime:
        """Returns the time of day, aware, in UTC. It may jump."""
        ...

    def monotonic(self) -> float:
        """Returns seconds since a fixed moment. They never run backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns after that many seconds; with 0 or less, other tasks still run once."""
        ...

    @property
    def liveness(self) -> Clock:
        """The clock of heartbeats, leases and watches: this one, unless a test advances time by hours at once."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))

    @property
    def liveness(self) -> Clock:
        return self


# How many turns of the event loop a woken task gets before time moves on. A task that hops through more
# callbacks than this without sleeping would see a later time than it should; real chains are far shorter.
_TURNS = 50


async def settle() -> None:
    """Runs every task until it waits for something."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


_START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that stands still until `advance` is called.

    Sleepers wake in the order of their deadlines, those of equal deadlines in the order in which they went to sleep,
    and each sees its own deadline as the present. Belongs to one event loop.
    """

    def __init__(self, start: datetime = _START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._watchers: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        alarm = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), alarm))
        self._tell_watchers()
        await alarm

    @property
    def liveness(self) -> Clock:
        return self

    @property
    def sleeping(self) -> int:
        """The number of tasks that sleep now, without cancelled ones."""
        return sum(not alarm.done() for _, _, alarm in self._sleepers)

    async def until_sleeping(self, count: int = 1) -> None:
        """Returns once at least `count` tasks sleep: a test waits with it for a part that does real I/O first."""
        if self.sleeping < count:
            reached = asyncio.get_running_loop().create_future()
            self._watchers.append((count, reached))
            await reached

    async def settle(self) -> None:
        """Runs every task until it waits for something."""
        await settle()

    async def advance(self, seconds: float) -> None:
        """Moves time forward and stops at each deadline to let the sleeper run."""
        await self.settle()
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            deadline, _, alarm = heapq.heappop(self._sleepers)
            if alarm.done():
                continue
            self._elapsed = deadline
            alarm.set_result(None)
            await self.settle()
        self._elapsed = target
        await self.settle()

    def _tell_watchers(self) -> None:
        waiting, sleeping = self._watchers, self.sleeping
        self._watchers = [(count, reached) for count, reached in waiting if count > sleeping]
        for count, reached in waiting:
            if count <= sleeping and not reached.done():
                reached.set_result(None)
