"""Deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from navarch._base.clock import ManualClock
from navarch._base.deadlines import Deadlines
from navarch._base.tasks import cancel_and_wait


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def deadlines(clock: ManualClock) -> AsyncIterator[Deadlines]:
    deadlines = Deadlines(clock, 10)
    running = asyncio.get_running_loop().create_task(deadlines.run())
    yield deadlines
    await cancel_and_wait(running)


async def _limited(deadlines: Deadlines, work: asyncio.Future[str]) -> str:
    with deadlines.limit():
        return await work


async def test_work_in_time_is_left_alone(clock: ManualClock, deadlines: Deadlines) -> None:
    """What ends before its limit gives its result."""
    work = asyncio.get_running_loop().create_future()
    task = asyncio.get_running_loop().create_task(_limited(deadlines, work))
    await clock.advance(9)
    work.set_result("done")
    assert await task == "done"


async def test_late_work_is_cut_off(clock: ManualClock, deadlines: Deadlines) -> None:
    """What takes longer is cancelled, and its caller gets a TimeoutError."""
    work = asyncio.get_running_loop().create_future()
    task = asyncio.get_running_loop().create_task(_limited(deadlines, work))
    await clock.advance(10)
    with pytest.raises(TimeoutError, match="10 s"):
        await task
    assert work.cancelled()
    assert task.cancelling() == 0


async def test_each_job_has_its_own_limit(clock: ManualClock, deadlines: Deadlines) -> None:
    """A job that began later is cut off later."""
    first = asyncio.get_running_loop().create_task(_limited(deadlines, asyncio.get_running_loop().create_future()))
    await clock.advance(4)
    second = asyncio.get_running_loop().create_task(_limited(deadlines, asyncio.get_running_loop().create_future()))
    await clock.advance(6)
    assert first.done()
    assert not second.done()
    await clock.advance(4)
    assert second.done()
    for task in (first, second):
        with pytest.raises(TimeoutError):
            await task


async def test_cancellation_from_elsewhere_takes_its_course(clock: ManualClock, deadlines: Deadlines) -> None:
    """Whoever is cancelled by another is cancelled, not late."""
    task = asyncio.get_running_loop().create_task(_limited(deadlines, asyncio.get_running_loop().create_future()))
    await clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_stubborn_work_is_cancelled_again(clock: ManualClock, deadlines: Deadlines) -> None:
    """Work that swallows its cancellation gets another one after as long."""
    cancellations = 0

    async def stubborn() -> None:
        nonlocal cancellations
        while cancellations < 2:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cancellations += 1
        raise asyncio.CancelledError

    async def limited() -> None:
        with deadlines.limit():
            await stubborn()

    task = asyncio.get_running_loop().create_task(limited())
    await clock.advance(10)
    assert cancellations == 1
    await clock.advance(10)
    with pytest.raises(TimeoutError):
        await task
