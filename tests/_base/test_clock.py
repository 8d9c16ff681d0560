"""Time that a test owns."""

import asyncio
from datetime import UTC, timedelta

from hypothesis import given
from hypothesis import strategies as st

from navarch._base.clock import Clock, ManualClock, SystemClock


async def test_system_clock_tells_aware_utc_and_never_runs_backwards() -> None:
    """Times carry their zone, and the monotonic reading only grows."""
    clock: Clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(-1)
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() >= before


async def test_manual_clock_stands_still_until_advanced() -> None:
    """Nothing but advance moves the time of day or the monotonic reading."""
    clock = ManualClock()
    start = clock.now()
    await clock.sleep(0)
    assert (clock.now(), clock.monotonic()) == (start, 0.0)
    await clock.advance(90)
    assert (clock.now(), clock.monotonic()) == (start + timedelta(seconds=90), 90.0)


async def test_sleepers_wake_at_their_own_deadline_in_order() -> None:
    """Each sleeper sees its own deadline, also one that goes back to sleep on the way."""
    clock = ManualClock()
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            seen.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("slow", 5))
        group.create_task(sleeper("twice", 2, 2))
        group.create_task(sleeper("tied", 5))
        await clock.until_sleeping(3)
        await clock.advance(10)
    assert seen == [("twice", 2.0), ("twice", 4.0), ("slow", 5.0), ("tied", 5.0)]
    assert clock.monotonic() == 10.0


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    """Cancelling a sleeper neither holds the clock up nor counts as sleeping."""
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(clock.sleep(5))
        await clock.until_sleeping()
        task.cancel()
        await clock.settle()
        assert clock.sleeping == 0
        await clock.advance(10)
    assert task.cancelled()


@given(st.lists(st.floats(min_value=0.001, max_value=1000), max_size=20))
def test_advancing_far_enough_wakes_everybody_in_deadline_order(naps: list[float]) -> None:
    """However many sleep, they wake sorted by deadline."""
    woken: list[float] = []

    async def scenario() -> None:
        clock = ManualClock()

        async def sleeper(seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(seconds)

        async with asyncio.TaskGroup() as group:
            for nap in naps:
                group.create_task(sleeper(nap))
            await clock.advance(1000)

    asyncio.run(scenario())
    assert woken == sorted(naps)
