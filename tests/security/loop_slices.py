"""Measures for how long an event loop served nobody else, in processor time: what else the machine does hardly counts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from navarch._base.clock import SystemClock
from navarch._base.tasks import TaskSet

_PAUSE = 0.002


class LoopSlices:
    """The longest slices of a loop, in seconds: between two turns of a task that always wants one.

    A slice is the processor time of the whole process, with that of threads which hold the interpreter meanwhile.
    """

    def __init__(self) -> None:
        self._longest = 0.0
        self._last = time.process_time()

    def take(self) -> float:
        """Returns the longest slice since it was asked last; the one that is not over yet counts, too."""
        self._end_slice()
        longest, self._longest = self._longest, 0.0
        return longest

    def _end_slice(self) -> None:
        now = time.process_time()
        self._longest = max(self._longest, now - self._last)
        self._last = now

    async def run(self) -> None:
        """Measures until it is cancelled."""
        while True:
            self._end_slice()
            await SystemClock().sleep(_PAUSE)


@asynccontextmanager
async def measured_slices() -> AsyncIterator[LoopSlices]:
    """Measures the present loop while the block lasts."""
    slices = LoopSlices()
    tasks = TaskSet()
    tasks.start(slices.run(), "loop slices")
    try:
        yield slices
    finally:
        await tasks.stop()
