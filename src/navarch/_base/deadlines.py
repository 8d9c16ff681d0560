"""One time limit for many jobs, enforced by a single sleeping task."""

from __future__ import annotations

import asyncio
from types import TracebackType

from navarch._base.clock import Clock


class DeadlineExceededError(TimeoutError):
    """The job exceeded the limit of `Deadlines`; a time limit inside the job raises a plain TimeoutError."""


class _Deadline:
    """The deadline of one job of one task. A job that was cut off raises DeadlineExceededError instead of
    CancelledError.
    """

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
            raise DeadlineExceededError(
                f"expected an end within {self._deadlines.seconds:g} s; it was cut off"
            ) from error

    def cut_off(self) -> None:
        assert self._task is not None
        if self._is_cut_off:
            self._task.uncancel()
        self._is_cut_off = True
        self._task.cancel()


class Deadlines:
    """Cancels every job that takes longer than so many seconds: `with deadlines.limit(): await work()`.

    Unlike asyncio.timeout it uses the injected clock. A job that ignores its cancellation is cancelled again after the
    same time. Limits are enforced only while `run` is running.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.seconds = seconds
        self._clock = clock
        self._due: dict[_Deadline, float] = {}  # all limits are alike, so jobs are due in the order in which they began
        self._begun = asyncio.Event()

    def limit(self) -> _Deadline:
        """Returns a context manager for one job of this task; it raises DeadlineExceededError if the job was cut off."""
        return _Deadline(self)

    def begin(self, job: _Deadline) -> None:
        """Starts the deadline."""
        self._due[job] = self._clock.monotonic() + self.seconds
        self._begun.set()

    def end(self, job: _Deadline) -> None:
        """Removes the deadline."""
        del self._due[job]

    async def run(self) -> None:
        """Cancels late jobs; only cancellation ends it."""
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
