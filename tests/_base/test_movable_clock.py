"""Time that passes by itself, and faster when it is told to."""

from __future__ import annotations

import asyncio

from navarch._base.movable_clock import MovableClock


async def test_sleepers_wake_when_time_is_moved_past_them() -> None:
    """In the order of their deadlines, and again if they go on sleeping; who sleeps longer goes on."""
    clock, woken = MovableClock(), list[tuple[str, int]]()
    began = clock.monotonic()

    async def sleeps(name: str, seconds: float, times: int) -> None:
        for _ in range(times):
            await clock.sleep(seconds)
            woken.append((name, round(clock.monotonic() - began) // 10))

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        long = group.create_task(sleeps("long", 3600, 1))
        group.create_task(sleeps("b", 60, 1))
        group.create_task(sleeps("a", 25, 2))
        await clock.advance(100)
        assert woken == [("a", 2), ("a", 5), ("b", 6)]
        assert not long.done()
        long.cancel()
    assert 100 <= clock.monotonic() - began < 130


async def test_time_passes_by_itself_too() -> None:
    """Whoever sleeps for a moment wakes although nobody moves the clock."""
    clock = MovableClock()
    async with asyncio.timeout(30):
        before = clock.now()
        await clock.sleep(0.01)
        assert clock.now() > before


async def test_many_short_sleeps_are_not_waited_for_one_by_one() -> None:
    """Who looks ten times a second looks about once a second of those that pass."""
    clock, looks = MovableClock(), list[float]()

    async def look() -> None:
        while True:
            await clock.sleep(0.1)
            looks.append(clock.monotonic())

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        await clock.advance(60)
        looking.cancel()
    assert 50 <= len(looks) <= 70
