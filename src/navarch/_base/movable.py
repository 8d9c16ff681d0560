"""Time that passes by itself, and faster when it is told to."""

from __future__ import annotations

import asyncio
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["MovableClock"]

# How many turns of the event loop everything that woke up gets before time moves on, as with `ManualClock`.
_TURNS: Final = 50

_STEP: Final = 1.0
"""Sleepers whose deadlines are this close wake together, so that those who look often do not make a long time longer."""


class MovableClock:
    """The machine's time, and ahead of it by as much as `advance` was told. Belongs to one event loop."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._order = itertools.count()
        self._sleepers: dict[int, tuple[float, asyncio.Future[None]]] = {}

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._ahead)

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

    async def advance(self, seconds: float) -> None:
        """Moves time forward, stopping on the way to let those who sleep until then do what they wake up for.

        What takes real time, such as a connection or a process, is not waited for.
        """
        target = self.monotonic() + seconds
        await _settle()
        while (deadline := self._next_deadline()) <= target:
            self._move_to(min(deadline + _STEP, target))
            self._wake()
            await _settle()
        self._move_to(target)
        await _settle()

    def _next_deadline(self) -> float:
        return min((deadline for deadline, alarm in self._sleepers.values() if not alarm.done()), default=float("inf"))

    def _move_to(self, moment: float) -> None:
        self._ahead += max(0.0, moment - self.monotonic())

    def _wake(self) -> None:
        """In the order of their deadlines."""
        now = self.monotonic()
        for deadline, alarm in sorted(self._sleepers.values(), key=lambda sleeper: sleeper[0]):
            if deadline <= now:
                _ring(alarm)


def _ring(alarm: asyncio.Future[None]) -> None:
    if not alarm.done():
        alarm.set_result(None)


async def _settle() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
