"""A time limit for each of many jobs, at the price of one sleeper for all of them."""

from __future__ import annotations

import asyncio
from types import TracebackType

from navarch._base.clock import Clock

__all__ = ["CutOffError", "Deadlines"]


class CutOffError(TimeoutError):
    """The job took longer than its time limit; not a time limit of its own that it has let pass."""


class _Job:
    """One job of one task. Whoever leaves it late gets a CutOffError instead of the cancellation."""

    __slots__ = ("_deadlines", "_is_cut_off", "_task")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._task = asyncio.current_task()
        self._is_cut_off = False

    def __enter__(self) -> None:
        self._deadlines.begin(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._deadlines.end(self)
        # A cancellation from elsewhere that came at the same time takes its course.
        if self._is_cut_off and self._task and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise CutOffError(f"expected an end within {self._deadlines.seconds:g} s; it was cut off") from error

    def cut_off(self) -> None:
        assert self._task is not None
        if self._is_cut_off:
            self._task.uncancel()
        self._is_cut_off = True
        self._task.cancel()


class Deadlines:
    """Cuts off whatever takes longer than so many seconds: `with deadlines.limit(): await work()`.

    Unlike asyncio.timeout it goes by the clock that was handed over. Work that does not let itself be cancelled is
    cancelled again after as long. Nothing is cut off unless `run` is under way.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.seconds = seconds
        self._clock = clock
        self._due: dict[_Job, float] = {}  # all limits are alike, so jobs are due in the order in which they began
        self._begun = asyncio.Event()

    def limit(self) -> _Job:
        """A context manager for one job of this task; raises CutOffError if the job was cut off."""
        return _Job(self)

    def begin(self, job: _Job) -> None:
        """The job has its time from now on."""
        self._due[job] = self._clock.monotonic() + self.seconds
        self._begun.set()

    def end(self, job: _Job) -> None:
        """The job is over."""
        del self._due[job]

    async def run(self) -> None:
        """Cuts off what is late until it is cancelled."""
        while True:
            await self._begun.wait()
            while self._due:
                await self._clock.sleep(next(iter(self._due.values())) - self._clock.monotonic())
                self._cut_off_late()
            self._begun.clear()

    def _cut_off_late(self) -> None:
        now = self._clock.monotonic()
        for job in [job for job, due in self._due.items() if due <= now]:
            job.cut_off()
            del self._due[job]
            self._due[job] = now + self.seconds
