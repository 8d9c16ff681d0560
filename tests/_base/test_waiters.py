"""Waiting for something that somebody else brings about."""

import asyncio

from navarch._base.clock import ManualClock
from navarch._base.tasks import Waiters


async def _line_up(
    group: asyncio.TaskGroup, waiters: Waiters, names: str
) -> tuple[list[str], list[asyncio.Task[None]]]:
    woken: list[str] = []

    async def waiter(name: str) -> None:
        await waiters.wait()
        woken.append(name)

    tasks = [group.create_task(waiter(name)) for name in names]
    await ManualClock().settle()
    return woken, tasks


async def test_the_first_to_come_is_the_first_to_be_woken() -> None:
    """Each hint wakes exactly one, in the order of arrival."""
    waiters = Waiters()
    async with asyncio.TaskGroup() as group:
        woken, _ = await _line_up(group, waiters, "abc")
        waiters.wake_one()
        await ManualClock().settle()
        assert woken == ["a"]
        waiters.wake_all()
    assert woken == ["a", "b", "c"]


async def test_waking_nobody_is_not_remembered() -> None:
    """A hint is for those who wait now."""
    waiters = Waiters()
    waiters.wake_one()
    waiters.wake_all()
    async with asyncio.TaskGroup() as group:
        woken, tasks = await _line_up(group, waiters, "a")
        assert woken == []
        tasks[0].cancel()


async def test_a_hint_for_a_cancelled_waiter_goes_to_the_next() -> None:
    """The waiter was woken and cancelled before it ran: somebody else must look."""
    waiters = Waiters()
    async with asyncio.TaskGroup() as group:
        woken, (first, _) = await _line_up(group, waiters, "ab")
        waiters.wake_one()
        first.cancel()
        await ManualClock().settle()
        assert woken == ["b"]
    assert first.cancelled()


async def test_a_cancelled_waiter_leaves_the_line() -> None:
    """A waiter that gave up takes no hint from those behind it."""
    waiters = Waiters()
    async with asyncio.TaskGroup() as group:
        woken, (first, _) = await _line_up(group, waiters, "ab")
        first.cancel()
        waiters.wake_one()
        await ManualClock().settle()
        assert woken == ["b"]
