"""A clock that follows the machine's time and can be advanced."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Final

from navarch._base.clock import Clock, settle

_log = logging.getLogger("navarch.clock")

_STEP: Final = 1.0
"""Sleepers whose deadlines are this close wake together: frequent sleepers do not slow down a long advance."""
_ALIVE: Final = 60.0
"""Heartbeats run for so many seconds at the beginning and at the end of a long advance: dead nodes are found, and
leases are fresh afterwards. They skip the time between.
"""
_TELL_SECONDS: Final = 1.0


class _Timeline:
    """Seconds that pass by themselves and can be advanced, and the tasks that sleep until a moment of them."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._order = itertools.count()
        self._sleepers: dict[int, tuple[float, asyncio.Future[None]]] = {}

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        loop, number = asyncio.get_running_loop(), next(self._order)
        alarm = loop.create_future()
        self._sleepers[number] = (self.monotonic() + seconds, alarm)
        timer = loop.call_later(seconds, _ring, alarm)
        try:
            await alarm
        finally:
            timer.cancel()
            del self._sleepers[number]

    def until_next(self) -> float:
        """Returns the seconds until the first sleeper is due; infinity without sleepers."""
        deadlines = (deadline for deadline, alarm in self._sleepers.values() if not alarm.done())
        return min(deadlines, default=float("inf")) - self.monotonic()

    def move(self, seconds: float) -> None:
        self._ahead += seconds

    def wake(self) -> None:
        """Wakes the sleepers that are due, in the order of their deadlines."""
        now = self.monotonic()
        for deadline, alarm in sorted(self._sleepers.values(), key=lambda sleeper: sleeper[0]):
            if deadline <= now:
                _ring(alarm)


class _Liveness:
    """The clock of heartbeats: the same time of day, with a timeline of its own."""

    def __init__(self, clock: MovableClock, timeline: _Timeline) -> None:
        self._clock = clock
        self.monotonic = timeline.monotonic
        self.sleep = timeline.sleep

    def now(self) -> datetime:
        return self._clock.now()

    @property
    def liveness(self) -> Clock:
        return self


class MovableClock:
    """The machine's time plus the seconds of every `advance`. Belongs to one event loop."""

    def __init__(self) -> None:
        self._timers = _Timeline()
        self._heartbeats = _Timeline()
        self._ahead = 0.0
        self.monotonic = self._timers.monotonic
        self.sleep = self._timers.sleep
        self.liveness: Clock = _Liveness(self, self._heartbeats)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._ahead)

    async def advance(self, seconds: float) -> None:
        """Moves time forward and stops on the way to let due sleepers run.

        In a long advance, heartbeats (`liveness`) run only in the first and the last minute. It does not wait for real
        I/O such as a connection or a process.
        """
        everything, ends = (self._timers, self._heartbeats), self.monotonic() + seconds
        progress = _Progress(seconds)
        if seconds > 2 * _ALIVE:
            await self._pass(self.monotonic() + _ALIVE, everything, _STEP, progress)
            await self._pass(ends - _ALIVE, (self._timers,), 0.0, progress)
        await self._pass(ends, everything, _STEP, progress)

    async def _pass(self, target: float, timelines: tuple[_Timeline, ...], step: float, progress: _Progress) -> None:
        await settle()
        while (due := min(timeline.until_next() for timeline in timelines)) <= target - self.monotonic():
            self._move(min(due + step, target - self.monotonic()), timelines)
            progress.tell(target - self.monotonic())
            for timeline in timelines:
                timeline.wake()
            await settle()
        self._move(target - self.monotonic(), timelines)
        await settle()

    def _move(self, seconds: float, timelines: tuple[_Timeline, ...]) -> None:
        step = max(0.0, seconds)
        self._ahead += step
        for timeline in timelines:
            timeline.move(step)


class _Progress:
    """Logs the progress of a long advance, once a second of real time."""

    def __init__(self, seconds: float) -> None:
        self._whole = timedelta(seconds=round(seconds))
        self._told_at = time.monotonic()

    def tell(self, left: float) -> None:
        if time.monotonic() - self._told_at >= _TELL_SECONDS:
            self._told_at = time.monotonic()
            passed = self._whole - timedelta(seconds=round(left))
            _log.info("%s of %s have passed", passed, self._whole)


def _ring(alarm: asyncio.Future[None]) -> None:
    if not alarm.done():
        alarm.set_result(None)
