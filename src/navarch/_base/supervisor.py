"""`Supervisor`: restarts background tasks that fail, and reports their state."""

from __future__ import annotations

import asyncio
import logging
import random
import traceback
from collections.abc import Awaitable, Callable
from typing import Final, Literal, Self

import msgspec

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch._base.tasks import cancel_and_wait, is_cancelled

_log = logging.getLogger("navarch.supervisor")

RESTARTS: Final = Backoff(initial=1.0, maximum=30.0)
_WELL_SECONDS: Final = 60.0
_LONGEST_CAUSE: Final = 500
_RETURNED: Final = "it returned, though it should run until it is cancelled"

State = Literal["running", "failing", "backing off", "stopped"]
Check = Callable[[], str | None]
"""Returns None while the task is well, else the problem."""


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a task. `cause` says why it is not `running`; `restarts` counts since the supervisor was created."""

    name: str
    state: State
    cause: str = ""
    restarts: int = 0

    @property
    def is_well(self) -> bool:
        """True if the task runs, or was stopped on purpose."""
        return self.state in {"running", "stopped"}


class SupervisedTask:
    """One task of a `Supervisor`: `start` it in the background, or `supervise` it in the caller's task."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        clock: Clock,
        delays: BackoffDelays,
        *,
        check: Check | None,
        once: bool,
        restarts: int,
    ) -> None:
        self.name = name
        self.restarts = restarts
        self.is_stopped = True
        self._run = run
        self._clock = clock
        self._delays = delays
        self._check = check
        self._once = once
        self._cause = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def status(self) -> TaskStatus:
        """The state at this moment."""
        state, cause = self._state()
        return TaskStatus(name=self.name, state=state, cause=cause, restarts=self.restarts)

    def _state(self) -> tuple[State, str]:
        if self.is_stopped:
            return "stopped", ""
        if self._cause:
            return "backing off", self._cause
        fault = self._check() if self._check is not None else None
        return ("failing", " ".join(fault.split())) if fault else ("running", "")

    def start(self) -> Self:
        """Starts the task in the background."""
        self.is_stopped = False
        self._task = asyncio.create_task(self.supervise(), name=self.name)
        return self

    async def stop(self) -> None:
        """Cancels the task that `start` created, and returns when it has ended; may be called twice."""
        self.is_stopped = True
        if self._task is not None:
            await cancel_and_wait(self._task)

    async def supervise(self) -> None:
        """Runs the task, again after each failure, until cancelled; for a task that belongs to a TaskGroup."""
        self.is_stopped = False
        try:
            while not await self._has_finished():
                self.restarts += 1
        finally:
            self.is_stopped = True

    async def _has_finished(self) -> bool:
        """Runs the task once and waits for the delay after it. Returns True if it is not to run again."""
        began, error = self._clock.monotonic(), None
        self._cause = ""
        try:
            await self._run()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as raised:
            if is_cancelled():
                raise
            error = raised
        if error is None and self._once:
            return True
        if self._clock.monotonic() - began >= _WELL_SECONDS:
            self._delays.reset()
        await self._back_off(error, self._delays.next_delay())
        return False

    async def _back_off(self, error: BaseException | None, delay: float) -> None:
        self._cause = cause_of(error) if error is not None else _RETURNED
        _log.error("%s failed: %s; restart %d in %.1f s", self.name, self._cause, self.restarts + 1, delay)
        _log.debug("%s failed", self.name, exc_info=error)
        await self._clock.sleep(delay)


class Supervisor:
    """Runs tasks that should never end: restarts one that raises or returns, after a delay; the others continue.

    Delays grow, and start again after a task has run for a minute. Each failure is one line in the log; the traceback
    is logged at DEBUG.
    """

    def __init__(self, clock: Clock, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._tasks: dict[str, SupervisedTask] = {}

    def task(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        *,
        check: Check | None = None,
        once: bool = False,
        backoff: Backoff = RESTARTS,
    ) -> SupervisedTask:
        """Returns a new task, not yet started. `check` reports a problem while it runs; with `once` it ends when `run`
        returns. It replaces a stopped task of the same name and continues its count of restarts.
        """
        before = self._tasks.get(name)
        assert before is None or before.is_stopped, f"expected one task {name!r}, got a second"
        restarts, delays = before.restarts if before is not None else 0, BackoffDelays(backoff, self._rng)
        made = SupervisedTask(name, run, self._clock, delays, check=check, once=once, restarts=restarts)
        self._tasks[name] = made
        return made

    def statuses(self) -> list[TaskStatus]:
        """Returns the status of every task, in the order of their creation."""
        return [task.status for task in self._tasks.values()]

    async def stop(self) -> None:
        """Stops every started task, the last one first."""
        for task in reversed(tuple(self._tasks.values())):
            await task.stop()


def cause_of(error: BaseException) -> str:
    """Returns one line that names the error, and its place in the code unless it is an OSError or Navarch's own.

    Of an exception group it takes the first error.

    >>> cause_of(ExceptionGroup("", [OSError("no space")]))
    'OSError: no space'
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = " ".join(str(error).split()).encode("utf-8", "backslashreplace").decode()
    words = words if len(words) <= _LONGEST_CAUSE else f"{words[:_LONGEST_CAUSE]}..."
    if type(error).__module__.partition(".")[0] == "navarch" and words:  # its text is for people
        return words
    named = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return named if isinstance(error, OSError) else f"{named}{_place(error)}"


def _place(error: BaseException) -> str:
    """Returns the file and line that raised the error."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return "".join(f" ({frame.filename.rpartition('/')[2]}:{frame.lineno})" for frame in frames)
