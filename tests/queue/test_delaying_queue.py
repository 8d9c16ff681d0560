"""Keys that come later: asked for, or because they failed."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest

from navarch._base.backoff import Backoff
from navarch._base.clock import ManualClock
from navarch.queue import LOW, QueueOptions, WorkQueue
from navarch.queue.queue import DelayingQueue

# A key that does not come would be waited for; no test here needs more than a second.
pytestmark = pytest.mark.timeout(60)


@contextlib.asynccontextmanager
async def running(clock: ManualClock, options: QueueOptions | None = None) -> AsyncIterator[WorkQueue[str]]:
    queue: WorkQueue[str] = WorkQueue("test", clock, random.Random(1), options or QueueOptions())
    async with asyncio.TaskGroup() as group:
        moving = group.create_task(queue.run())
        await clock.settle()
        yield queue
        moving.cancel()


async def test_a_delayed_key_comes_when_it_is_due() -> None:
    """Not before, and with its reason and priority; only then does it wait."""
    clock = ManualClock()
    async with running(clock) as queue:
        queue.add_after("a", 5, reason="asked for", priority=LOW)
        await clock.advance(4.9)
        assert queue.depth == 0
        await clock.advance(0.3)
        work = await queue.get()
        assert (work.reasons, work.priority) == (("asked for",), LOW)
        assert work.waited == pytest.approx(0.2)


async def test_no_delay_is_now() -> None:
    """Nothing or less does not wait for the mover."""
    queue: WorkQueue[str] = WorkQueue("test", ManualClock(), random.Random(1))
    queue.add_after("a", 0, reason="now")
    queue.add_after("a", -1)
    assert (await queue.get()).reasons == ("now",)


@pytest.mark.parametrize("delays", [(5, 2), (2, 5), (2, 5, 2, 9)])
async def test_the_earliest_of_several_times_holds(delays: tuple[float, ...]) -> None:
    """The key comes once, at that time, for all the reasons and with the highest priority."""
    clock = ManualClock()
    async with running(clock) as queue:
        for number, delay in enumerate(delays):
            queue.add_after("a", delay, reason=str(delay), priority=number)
            await clock.settle()
        await clock.advance(1.9)
        assert queue.depth == 0
        await clock.advance(0.1)
        work = await queue.get()
        assert (set(work.reasons), work.priority) == ({str(delay) for delay in delays}, len(delays) - 1)
        queue.done("a")
        await clock.advance(20)
        assert queue.depth == 0


async def test_keys_come_in_the_order_of_their_times() -> None:
    """Also one that is asked for later and is due sooner, while the mover sleeps."""
    clock = ManualClock()
    async with running(clock) as queue:
        queue.add_after("late", 30)
        await clock.advance(1)
        queue.add_after("soon", 1)
        queue.add_after("sooner", 0.5)
        await clock.advance(30)
        works = [await queue.get() for _ in range(3)]
        assert [(work.key, work.waited) for work in works] == [("sooner", 29.5), ("soon", 29), ("late", 1)]


async def test_a_key_that_is_due_while_it_waits_is_merged() -> None:
    """It still waits once."""
    clock = ManualClock()
    async with running(clock) as queue:
        queue.add("a", reason="changed")
        queue.add_after("a", 1, reason="time")
        await clock.advance(2)
        assert queue.depth == 1
        assert (await queue.get()).reasons == ("changed", "time")


async def test_a_key_that_is_due_while_it_is_worked_on_comes_after_that() -> None:
    """Never two workers on one key."""
    clock = ManualClock()
    async with running(clock) as queue:
        queue.add("a")
        await queue.get()
        queue.add_after("a", 1, reason="time")
        queue.add("b")
        await clock.advance(2)
        assert (await queue.get()).key == "b"
        queue.done("a")
        assert (await queue.get()).reasons == ("time",)


async def test_a_hand_out_before_the_time_is_enough() -> None:
    """The key was looked at after it was asked for: it does not come a second time."""
    clock = ManualClock()
    async with running(clock) as queue:
        queue.add_after("a", 5, reason="time")
        queue.add("a", reason="changed")
        assert (await queue.get()).reasons == ("changed",)
        queue.done("a")
        await clock.advance(10)
        assert queue.depth == 0


async def test_a_time_asked_for_during_the_work_holds_after_it() -> None:
    """How a worker asks to come again: the hand-out that it is in does not count."""
    clock = ManualClock()
    async with running(clock) as queue:
        queue.add("a")
        await queue.get()
        queue.add_after("a", 5)
        queue.done("a")
        await clock.advance(4)
        assert queue.depth == 0
        await clock.advance(1)
        assert queue.depth == 1


async def test_times_that_no_longer_hold_are_not_kept() -> None:
    """Asking for a time again and again, each time in vain, takes no memory."""
    delayed: DelayingQueue[str] = DelayingQueue()
    for number in range(10_000):
        delayed.put("a", 1e6 - number, "", 0)
        if number % 2:
            delayed.drop("a")
    assert len(delayed._by_time) < 200
    assert delayed.next_due() is None


class TestRetry:
    """Keys that fail."""

    BACKOFF = Backoff(initial=1, factor=3, maximum=20, jitter=0)

    async def test_delays_grow_until_the_key_is_forgotten(self) -> None:
        """Each key by itself; the worker learns how often it failed."""
        clock = ManualClock()
        async with running(clock, QueueOptions(backoff=self.BACKOFF)) as queue:
            queue.add("other")
            assert (await queue.get()).attempt == 0
            assert queue.retry("other") == 1
            queue.done("other")
            queue.add("a")
            for attempt, expected in enumerate((1, 3, 9, 20, 20)):
                work = await queue.get()
                while work.key != "a":
                    queue.done(work.key)
                    work = await queue.get()
                assert work.attempt == attempt
                assert queue.retry("a", reason="failed") == expected
                queue.done("a")
                await clock.advance(expected)
            queue.forget("a")
            work = await queue.get()
            assert (work.attempt, work.reasons) == (0, ("failed",))
            assert queue.retry("a") == 1

    async def test_delays_are_not_in_step(self) -> None:
        """Keys that fail together come again at different times, none later than without jitter."""
        queue: WorkQueue[int] = WorkQueue("test", ManualClock(), random.Random(1))
        delays = [queue.retry(key) for key in range(100)]
        assert len(set(delays)) == 100
        assert all(0.004 <= delay <= 0.005 for delay in delays)

    async def test_the_longest_delay_is_that_of_the_options(self) -> None:
        """However often a key fails."""
        queue: WorkQueue[str] = WorkQueue("test", ManualClock(), random.Random(1))
        assert 800 <= [queue.retry("a") for _ in range(2000)][-1] <= 1000

    async def test_a_key_that_failed_keeps_its_priority(self) -> None:
        """A key of the initial list does not push ahead by failing."""
        clock = ManualClock()
        async with running(clock) as queue:
            queue.add("a", priority=LOW)
            await queue.get()
            queue.retry("a")
            queue.done("a")
            await clock.advance(1)
            assert (await queue.get()).priority == LOW

    async def test_a_change_need_not_wait_for_the_delay(self) -> None:
        """The change may be what makes it work; the failures still count."""
        clock = ManualClock()
        async with running(clock) as queue:
            queue.retry("a")
            queue.add("a", reason="changed")
            work = await queue.get()
            assert (work.attempt, work.reasons) == (1, ("changed",))
            queue.done("a")
            await clock.advance(2000)
            assert queue.depth == 0
