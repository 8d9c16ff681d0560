"""Tasks that do not outlive the code that started them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from navarch._base.clock import Clock

T = TypeVar("T")


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancels the tasks and returns when they have ended; what they raise on the way out is dropped.

    If the caller itself is cancelled meanwhile, it is not held up: the tasks have already been told.
    """
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # marks it as seen: otherwise asyncio logs it as never retrieved


def is_cancelled() -> bool:
    """Whether the running task was told to end. A CancelledError alone does not say so: code within may raise one, for
    example by awaiting something else that was cancelled; or it may have kept the error to itself.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def acquire(work: Coroutine[Any, Any, T], release: Callable[[T], Awaitable[None]]) -> T:
    """The result of `work`, for work that makes something which must be given back and is soon done.

    It is not interrupted: if the caller is cancelled meanwhile, the result goes to `release`, and then the
    cancellation takes its course.
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
    """The result of `work`, for a thread that goes on whoever is cancelled: a cancellation takes its course once it ended."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # nobody asks for it any more
        raise


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or TimeoutError once the clock says that the time is up.

    Unlike asyncio.timeout it goes by the clock that was handed over. Work that is too late has been cancelled,
    and has ended, before this returns.
    """
    task = asyncio.create_task(work)
    alarm = asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait((task, alarm), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        await cancel_and_wait(alarm, task)
    raise TimeoutError(f"expected a result within {seconds:g} s")


async def unless(stop: Coroutine[Any, Any, object], work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None if `stop` ends first; what either raises is raised.

    Whichever is left has been cancelled, and has ended, before this returns.
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
    """What `ask` gives, one after the other: the next is asked for while the caller is busy with the last.

    What was asked for and is not wanted any more is cancelled at the end of the block.
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
