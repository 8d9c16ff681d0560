"""What the parts of the control plane are built from."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from navarch._base.clock import ManualClock
from navarch._base.tasks import cancel_and_wait
from navarch.cache import Cache
from navarch.client import Client
from navarch.cluster.controllers.controller_context import ControllerContext, PodIndex, Workers
from navarch.controller.events import Recorder
from navarch.errors import Conflict
from scripted import ScriptedTransport


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def around(clock: ManualClock) -> ControllerContext:
    """Whatever a part needs, without a server."""
    client = Client(ScriptedTransport(), clock=clock, rng=random.Random(1))
    cache = Cache(client, clock, client.rng)
    return ControllerContext(client, cache, Recorder(client, "test", "test", clock, client.rng), PodIndex(cache))


async def while_running(work: Callable[[], Awaitable[None]], body: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run(work))
        await body()
        await cancel_and_wait(task)


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def test_key_that_fails_comes_again(around: ControllerContext, clock: ManualClock) -> None:
    """Whatever it fails with; the others are not held up."""
    seen: list[str] = []
    faults: list[Exception] = [Conflict("changed", code=409), ValueError("overlooked")]

    async def handle(key: str) -> None:
        seen.append(key)
        if key == "bad" and faults:
            raise faults.pop()

    workers: Workers[str] = Workers("test", around, handle, concurrency=1)
    for key in ("bad", "good"):
        workers.queue.add(key)

    async def body() -> None:
        await clock.advance(5)

    await while_running(workers.run, body)
    assert seen == ["bad", "good", "bad", "bad"]


async def test_key_can_ask_to_be_looked_at_later(around: ControllerContext, clock: ManualClock) -> None:
    """After the seconds that it returned."""
    seen: list[float] = []

    async def handle(key: str) -> float | None:
        assert key == "key"
        seen.append(clock.monotonic())
        return 10.0 if len(seen) == 1 else None

    workers: Workers[str] = Workers("test", around, handle)
    workers.queue.add("key")

    async def body() -> None:
        await clock.advance(100)

    await while_running(workers.run, body)
    assert seen == [0.0, 10.0]
