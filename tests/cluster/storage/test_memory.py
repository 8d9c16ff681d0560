"""How much of the past a store in memory keeps."""

from __future__ import annotations

import asyncio

import pytest

from cluster.storage.watching import begun, failure, take
from navarch.cluster.storage.history import HistoryLimits
from navarch.cluster.storage.memory import MemoryStorage
from navarch.cluster.storage.protocol import CompactedError


async def test_only_so_many_revisions_are_kept() -> None:
    """The oldest go first; from the oldest that is left, everything can be had."""
    storage = MemoryStorage(HistoryLimits(revisions=3))
    revisions = [await storage.put(f"/p/{number}", b"", expected=0) for number in range(10)]
    with pytest.raises(CompactedError) as refused:
        await storage.page("/p/", revision=revisions[5])
    assert refused.value.oldest == revisions[6]
    assert len((await storage.page("/p/", revision=revisions[6])).items) == 7
    async with storage.watch("/p/", after=revisions[6]) as watcher:
        assert [event.revision for event in await take(watcher, 3)] == revisions[7:]


async def test_only_so_many_bytes_are_kept() -> None:
    """Values that were replaced count as well, since they are kept too."""
    storage = MemoryStorage(HistoryLimits(size=250))
    revision = 0
    for _ in range(5):
        revision = await storage.put("/p", b"x" * 100, expected=revision)
    with pytest.raises(CompactedError) as refused:
        await storage.page("/p", revision=2)
    assert refused.value.oldest == revision - 1


async def test_a_slow_watcher_learns_that_it_missed_something() -> None:
    """It is not fed half of the truth, and nobody waited for it."""
    storage = MemoryStorage(HistoryLimits(revisions=3))
    async with storage.watch("/p/", after=1) as watcher:
        for number in range(4):
            await storage.put(f"/p/{number}", b"", expected=0)
        assert isinstance(await failure(watcher), CompactedError)


async def test_a_watcher_that_waits_is_not_slow() -> None:
    """However much is written under other prefixes meanwhile."""
    storage = MemoryStorage(HistoryLimits(revisions=3))
    async with storage.watch("/p/", after=1) as watcher, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(take(watcher, 1))
        await begun(waiting)
        for number in range(10):
            await storage.put(f"/q/{number}", b"", expected=0)
        await storage.put("/p/1", b"", expected=0)
        assert [event.key for event in await waiting] == ["/p/1"]


async def test_a_watcher_that_was_woken_has_not_fallen_behind() -> None:
    """Waking it for another reason counts as having looked."""
    storage = MemoryStorage(HistoryLimits(revisions=3))
    async with storage.watch("/p/", after=1) as watcher:
        async with asyncio.TaskGroup() as tasks:
            await begun(tasks.create_task(watcher.wait()))
            for number in range(10):
                await storage.put(f"/q/{number}", b"", expected=0)
            watcher.wake()
        assert watcher.ready() == []


def test_limits_must_leave_something() -> None:
    """A store that keeps nothing could serve no watch."""
    with pytest.raises(ValueError, match="at least 1, got 0 revisions"):
        HistoryLimits(revisions=0)
