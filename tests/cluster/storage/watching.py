"""Taking a number of events from a watch, within a bound."""

from __future__ import annotations

import asyncio
from typing import Any

from navarch.cluster.storage.protocol import Event, StorageError, Watcher

SECONDS = 60.0


async def take(watcher: Watcher, count: int) -> list[Event]:
    """The next events; fails if they do not come, or if more come along with them."""
    events: list[Event] = []
    try:
        async with asyncio.timeout(SECONDS):
            while len(events) < count:
                await watcher.wait()
                events.extend(watcher.ready())
    except TimeoutError:
        raise AssertionError(f"expected {count} events, got {events} after {SECONDS:g} s") from None
    assert len(events) == count, f"expected {count} events, got {events}"
    return events


async def failure(watcher: Watcher) -> StorageError:
    """What the watch raises in the end."""
    async with asyncio.timeout(SECONDS):
        while True:
            await watcher.wait()
            try:
                watcher.ready()
            except StorageError as error:
                return error


async def begun(task: asyncio.Task[Any]) -> None:
    """Lets a task run until it waits for something that does not come by itself."""
    await asyncio.wait((task,), timeout=0.01)
    assert not task.done(), f"expected {task} to wait"
