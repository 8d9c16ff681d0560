"""Tasks that do not outlive their owner: cancellation, time limits, task sets."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from navarch._base.clock import Clock


class Waiters:
    """Tasks that wait, woken in the order in which they came.

    A wake-up is only a hint: check the condition again, and wait again if it does not hold. No hint is lost: one that
    reaches a waiter which is cancelled at the same moment goes to the next.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Returns when woken. Cancellation removes the waiter."""
        hint = asyncio.get_running_loop().create_future()
        self._waiting.append(hint)
        try:
            await hint
        except asyncio.CancelledError:
            if not hint.cancelled():
                self.wake_one()
            elif hint in self._waiting:  # it may have been passed over since
                self._waiting.remove(hint)
            raise

    def wake_one(self) -> None:
        """Wakes the task that has waited longest, if there is one."""
        while self._waiting:
            hint = self._waiting.popleft()
            if not hint.done():
                hint.set_result(None)
                return

    def wake_all(self) -> None:
        """Wakes every task that waits now."""
        while self._waiting:
            self.wake_one()


T = TypeVar("T")


async def gather_all(work: Sequence[Callable[[], Awaitable[T]]], *, at_once: int) -> list[T]:
    """Runs the work concurrently, at most `at_once` at a time, and returns the results in order.

    A failure does not cancel the rest; at the end the first error is raised, and its text has the others too.
    Cancellation ends everything.
    """
    turn = asyncio.Semaphore(at_once)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_outcome(turn, each)) for each in work]
    outcomes = [task.result() for task in tasks]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if failures:
        raise _first_with_all(failures, len(work))
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]


async def _outcome(turn: asyncio.Semaphore, work: Callable[[], Awaitable[T]]) -> T | Exception:
    async with turn:
        try:
            return await work()
        except Exception as error:  # noqa: BLE001 - it is raised when the others have ended
            return error


def _first_with_all(failures: list[Exception], count: int) -> Exception:
    first, *others = failures
    if others:
        rest = "; ".join(str(error) for error in others)
        first.args = (f"{first} (and {len(others)} more of {count} failed: {rest})",)
    return first


class AsyncCloseable(ABC):
    """An `async with` block closes it at its end."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Closes everything that is open."""


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancels the tasks and returns when they have ended; errors that they raise are dropped.

    If the caller is cancelled meanwhile, it does not wait: the tasks have been cancelled already.
    """
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # marks it as seen: otherwise asyncio logs it as never retrieved


def is_cancelled() -> bool:
    """Returns True if the running task was cancelled. A CancelledError alone does not prove it: code within may raise
    one, for example by awaiting another task that was cancelled, or may have swallowed it.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def acquire(work: Coroutine[Any, Any, T], release: Callable[[T], Awaitable[None]]) -> T:
    """Returns the result of `work`, which opens a resource and ends soon.

    A cancellation of the caller does not interrupt `work`: its result goes to `release`, and then the cancellation
    continues.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if task.exception() is None:
            await release(task.result())
        raise


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work`, which runs in a thread: a cancellation of the caller continues once `work` has
    ended.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # nobody asks for it any more
        raise


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work`. Raises TimeoutError once the clock has passed so many seconds.

    Unlike asyncio.timeout it uses the injected clock. Late work has been cancelled, and has ended, before this returns.
    """
    due = clock.monotonic() + seconds
    task = asyncio.create_task(work)
    alarm: asyncio.Task[None] | None = None
    try:
        await asyncio.sleep(0)  # most work does not wait for anything: an alarm would cost more than all of it
        if not task.done():
            alarm = asyncio.create_task(clock.sleep(due - clock.monotonic()))
            await asyncio.wait((task, alarm), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        if alarm is not None:
            await cancel_and_wait(alarm, task)
        elif not task.done():
            await cancel_and_wait(task)
    raise TimeoutError(f"expected a result within {seconds:g} s")


async def unless(stop: Coroutine[Any, Any, object], work: Coroutine[Any, Any, T]) -> T | None:
    """Returns the result of `work`, or None if `stop` ends first; raises the error of either.

    The other one has been cancelled, and has ended, before this returns.
    """
    task = asyncio.create_task(work)
    end = asyncio.create_task(stop)
    try:
        await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            end.result()
            return None
        return task.result()
    finally:
        await cancel_and_wait(end, task)


@asynccontextmanager
async def one_ahead(ask: Callable[[], Coroutine[Any, Any, T]]) -> AsyncIterator[Callable[[], Awaitable[T]]]:
    """Prefetches: yields a function that returns the results of `ask` in turn, while the next `ask` is already running.

    A pending `ask` is cancelled at the end of the block.
    """
    coming = asyncio.create_task(ask())

    async def following() -> T:
        nonlocal coming
        found = await coming
        coming = asyncio.create_task(ask())
        await asyncio.sleep(0)  # it is on its way before the caller gets busy
        return found

    try:
        yield following
    finally:
        await cancel_and_wait(coming)


_log = logging.getLogger("navarch.background")


class TaskSet:
    """The tasks of one owner that starts and ends in different tasks, as fixtures of tests do; elsewhere use a
    TaskGroup.

    A task that fails is logged, and the others continue.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Starts a task."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def wait(self) -> None:
        """Returns when the tasks that run now have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Cancels the running tasks and returns when they have ended."""
        await cancel_and_wait(*self._tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)
