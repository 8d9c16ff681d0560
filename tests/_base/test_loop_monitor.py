"""Whether a loop still turns."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from navarch._base.loop_monitor import LoopMonitor

BOUND = 60.0


@contextlib.asynccontextmanager
async def running(pulse: LoopMonitor) -> AsyncIterator[None]:
    """Begun on entry, ended on exit."""
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(pulse.run())
        await asyncio.wait({watch}, timeout=0)
        yield
        watch.cancel()


class Listener:
    def __init__(self) -> None:
        self.beats = asyncio.Queue[float]()
        self.told: list[str] = []
        self.released = threading.Event()
        self.ended = threading.Event()

    def turned(self, lag: float) -> None:
        self.beats.put_nowait(lag)

    def stuck(self, seconds: float) -> None:
        self.told.append("stuck")
        self.ended.clear()
        self.released.set()

    def freed(self, seconds: float) -> None:
        self.told.append("freed")
        self.released.clear()
        self.ended.set()


async def test_loop_that_turns_is_not_reported() -> None:
    """Only how long each answer took is told."""
    listener = Listener()
    async with asyncio.timeout(BOUND), running(LoopMonitor(listener, limit=20.0)):
        assert await listener.beats.get() >= 0
    assert listener.told == []


async def test_blockage_is_told_once_and_its_end_too() -> None:
    """However long it lasts. A machine that stalls has more than one, but none is told twice."""
    listener = Listener()
    async with asyncio.timeout(BOUND), running(LoopMonitor(listener, limit=0.1)):
        await listener.beats.get()
        assert listener.released.wait(BOUND), "expected the blockage to be told"
        assert not listener.ended.is_set()
        await asyncio.to_thread(listener.ended.wait, BOUND)
    assert listener.told[:2] == ["stuck", "freed"]
    assert all(one != other for one, other in pairwise(listener.told))


@pytest.mark.parametrize("beats", [0, 1])
async def test_thread_ends_with_the_watch(beats: int) -> None:
    """Whether it was cancelled before the first beat or after."""
    before, listener = set(threading.enumerate()), Listener()
    async with asyncio.timeout(BOUND), running(LoopMonitor(listener, limit=0.1)):
        assert {thread.name for thread in set(threading.enumerate()) - before} == {"navarch-pulse"}
        for _ in range(beats):
            await listener.beats.get()
    assert set(threading.enumerate()) <= before


def test_stop_just_before_a_beat_is_not_missed() -> None:
    """The thread looks once more after it has cleared the sign by which it is woken."""
    pulse = LoopMonitor(Listener(), limit=0.1)

    class StoppedMeanwhile(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            self.set()
            pulse._answered.set()
            return False

    pulse._stopping = StoppedMeanwhile()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=pulse._ask_again_and_again, args=(loop,), daemon=True)
    thread.start()
    thread.join(BOUND)
    loop.close()
    assert not thread.is_alive(), "expected the thread to end without another beat"
