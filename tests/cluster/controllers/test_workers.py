"""The worker pool of controllers and simulated nodes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from navarch._base.clock import ManualClock
from navarch._base.tasks import cancel_and_wait
from navarch.cluster.workers import Workers
from navarch.errors import Conflict


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def while_running(work: Callable[[], Awaitable[None]], body: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run(work))
        await body()
        await cancel_and_wait(task)


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def test_key_that_fails_comes_again(clock: ManualClock) -> None:
    """Whatever it fails with; the others are not held up."""
    seen: list[str] = []
    faults: list[Exception] = [Conflict("changed", code=409), ValueError("overlooked")]

    async def handle(key: str) -> None:
        seen.append(key)
        if key == "bad" and faults:
            raise faults.pop()

    workers: Workers[str] = Workers("test", clock, random.Random(1), handle, concurrency=1)
    for key in ("bad", "good"):
        workers.queue.add(key)

    async def body() -> None:
        await clock.advance(5)

    await while_running(workers.run, body)
    assert seen == ["bad", "good", "bad", "bad"]


async def test_key_can_ask_to_be_looked_at_later(clock: ManualClock) -> None:
    """After the seconds that it returned."""
    seen: list[float] = []

    async def handle(key: str) -> float | None:
        assert key == "key"
        seen.append(clock.monotonic())
        return 10.0 if len(seen) == 1 else None

    workers: Workers[str] = Workers("test", clock, random.Random(1), handle)
    workers.queue.add("key")

    async def body() -> None:
        await clock.advance(100)

    await while_running(workers.run, body)
    assert seen == [0.0, 10.0]
