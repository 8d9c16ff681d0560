"""What the queue promises about keys and workers."""

import asyncio
import random

import pytest

from navarch._base.clock import ManualClock
from navarch.errors import QueueClosedError
from navarch.queue import LOW, NORMAL, WorkQueue

# A key that does not come would be waited for; no test here needs more than a second.
pytestmark = pytest.mark.timeout(60)


def queue_of(*keys: str, clock: ManualClock | None = None) -> WorkQueue[str]:
    queue: WorkQueue[str] = WorkQueue("test", clock or ManualClock(), random.Random(1))
    for key in keys:
        queue.add(key)
    return queue


async def taken(queue: WorkQueue[str]) -> str:
    return (await queue.get()).key


async def test_a_key_waits_at_most_once() -> None:
    """However often a key is added, it is handed out once."""
    queue = queue_of("a", "b", "a", "a")
    assert queue.depth == 2
    assert [await taken(queue), await taken(queue)] == ["a", "b"]
    assert queue.depth == 0


async def test_reasons_are_collected_once_each() -> None:
    """The worker learns every reason in the order of its coming; none is made up for an add without one."""
    queue = queue_of()
    for reason in ("spec changed", "", "pod changed", "spec changed"):
        queue.add("a", reason=reason)
    queue.add("b")
    assert (await queue.get()).reasons == ("spec changed", "pod changed")
    assert (await queue.get()).reasons == ()


async def test_only_a_handful_of_reasons_is_kept() -> None:
    """A key that waits for long does not grow."""
    queue = queue_of()
    for number in range(100):
        queue.add("a", reason=f"lasting {number}")
        queue.add("b", reason=f"retractable {number}", token=number)
    for _ in range(2):
        assert len((await queue.get()).reasons) == 8


async def test_a_key_is_never_worked_on_by_two() -> None:
    """What is added during the work waits until that is done, and is handed out then."""
    queue = queue_of("a", "b")
    assert await taken(queue) == "a"
    queue.add("a", reason="changed meanwhile")
    assert await taken(queue) == "b"
    assert queue.depth == 1
    queue.done("b")
    queue.add("c")
    assert await taken(queue) == "c"
    queue.done("a")
    work = await queue.get()
    assert (work.key, work.reasons) == ("a", ("changed meanwhile",))


async def test_done_wakes_a_worker_for_the_key_that_was_held_back() -> None:
    """A worker that waits gets the key as soon as the other one is done with it."""
    queue = queue_of("a")
    assert await taken(queue) == "a"
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        second = group.create_task(taken(queue))
        await ManualClock().settle()
        assert not second.done()
        queue.done("a")
    assert second.result() == "a"


async def test_done_without_get_is_refused() -> None:
    """Twice done would let a second worker onto the key."""
    queue = queue_of("a")
    with pytest.raises(ValueError, match="expected a key that a worker has from the queue 'test', got a"):
        queue.done("a")
    queue.done(await taken(queue))
    with pytest.raises(ValueError, match="call done once"):
        queue.done("a")


async def test_a_key_says_how_long_it_waited() -> None:
    """From the first add on, also if it was held back or its priority was raised."""
    clock = ManualClock()
    queue = queue_of("a", clock=clock)
    await clock.advance(2)
    assert (await queue.get()).waited == 2
    queue.add("a", priority=LOW)
    await clock.advance(3)
    queue.done("a")
    queue.add("a", priority=NORMAL)
    work = await queue.get()
    assert (work.waited, work.priority) == (3, NORMAL)


class TestRetract:
    """Taking a reason back."""

    async def test_a_key_without_a_reason_left_is_not_handed_out(self) -> None:
        """All its reasons were taken back, in whatever order."""
        queue = queue_of()
        queue.add("a", token=1)
        queue.add("a", token=2)
        queue.add("b")
        queue.retract("a", 2)
        assert queue.depth == 2
        queue.retract("a", 1)
        assert queue.depth == 1
        assert await taken(queue) == "b"

    async def test_a_key_with_a_reason_left_is_handed_out_for_that_one(self) -> None:
        """The reason that was taken back is not shown."""
        queue = queue_of()
        queue.add("a", reason="echo", token=1)
        queue.add("a", reason="foreign write", token=2)
        queue.retract("a", 1)
        assert (await queue.get()).reasons == ("foreign write",)

    async def test_a_reason_without_a_token_cannot_be_retracted(self) -> None:
        """Not even one that was added without any text."""
        queue = queue_of("a")
        queue.add("a", token=1)
        queue.retract("a", 1)
        assert await taken(queue) == "a"

    async def test_a_key_that_is_worked_on_does_not_come_again(self) -> None:
        """The echo that came during the work was taken back before the work was done."""
        queue = queue_of("a", "b")
        assert await taken(queue) == "a"
        queue.add("a", token=1)
        queue.retract("a", 1)
        queue.done("a")
        assert queue.depth == 1
        assert await taken(queue) == "b"

    async def test_what_is_not_there_cannot_be_retracted(self) -> None:
        """An unknown key, an unknown token, and one that was already handed out change nothing."""
        queue = queue_of("a")
        queue.retract("b", 1)
        queue.retract("a", 1)
        queue.add("c", token=1)
        assert [await taken(queue), await taken(queue)] == ["a", "c"]
        queue.add("c")
        queue.retract("c", 1)
        queue.done("c")
        assert await taken(queue) == "c"

    async def test_a_retracted_key_can_be_added_again(self) -> None:
        """With nothing left of what was taken back."""
        queue = queue_of()
        queue.add("a", reason="echo", token=1)
        queue.retract("a", 1)
        queue.add("a", reason="changed")
        assert (await queue.get()).reasons == ("changed",)
        assert queue.depth == 0

    async def test_more_tokens_than_are_kept_never_lose_a_key(self) -> None:
        """A token too many makes its reason one that lasts."""
        queue = queue_of()
        for number in range(20):
            queue.add("a", token=number)
        for number in range(20):
            queue.retract("a", number)
        assert await taken(queue) == "a"

    async def test_a_delayed_key_comes_in_spite_of_a_retraction(self) -> None:
        """Adding a key at once and taking that back leaves the time at which it was to come anyway."""
        clock = ManualClock()
        queue = queue_of(clock=clock)
        async with asyncio.TaskGroup() as group:
            moving = group.create_task(queue.run())
            queue.add_after("a", 5)
            queue.add("a", token=1)
            queue.retract("a", 1)
            assert queue.depth == 0
            await clock.advance(5)
            assert queue.depth == 1
            moving.cancel()


class TestGet:
    """Waiting for a key."""

    async def test_waits_until_there_is_one(self) -> None:
        """Each key wakes one worker, the one that has waited longest."""
        queue = queue_of()
        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(taken(queue)), group.create_task(taken(queue))
            await ManualClock().settle()
            queue.add("a")
            await ManualClock().settle()
            assert (first.done(), second.done()) == (True, False)
            queue.add("b")
        assert (first.result(), second.result()) == ("a", "b")

    async def test_cancellation_loses_no_key(self) -> None:
        """A worker that is cancelled just after a key was added for it leaves the key to the next."""
        queue = queue_of()
        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(taken(queue)), group.create_task(taken(queue))
            await ManualClock().settle()
            queue.add("a")
            first.cancel()
        assert first.cancelled()
        assert second.result() == "a"

    async def test_a_retracted_key_wakes_nobody_for_good(self) -> None:
        """A worker that finds nothing waits on, and gets the next key."""
        queue = queue_of()
        async with asyncio.TaskGroup() as group:
            worker = group.create_task(taken(queue))
            await ManualClock().settle()
            queue.add("a", token=1)
            queue.retract("a", 1)
            await ManualClock().settle()
            assert not worker.done()
            queue.add("b")
        assert worker.result() == "b"

    def test_a_ready_key_is_handed_out_without_an_event_loop(self) -> None:
        """Nothing is spawned and nobody is waited for."""
        with pytest.raises(StopIteration) as ended:
            queue_of("a").get().send(None)
        assert ended.value.value.key == "a"


class TestClose:
    """The end of a queue."""

    async def test_nothing_more_is_handed_out(self) -> None:
        """Workers that wait and workers that come are told; what waits is dropped."""
        clock = ManualClock()
        queue = queue_of(clock=clock)
        async with asyncio.TaskGroup() as group:
            moving = group.create_task(queue.run())
            waiting = [group.create_task(_refused(queue)) for _ in range(3)]
            await clock.settle()
            queue.add_after("a", 1)
            queue.add("b")
            queue.close()
            queue.add("c")
            queue.add_after("d", 1)
            await clock.advance(2)
            assert queue.depth == 0
            moving.cancel()
        assert [task.result() for task in waiting] == [True] * 3
        assert await _refused(queue)

    async def test_drained_returns_when_the_last_work_is_done(self) -> None:
        """Also if the key was added again meanwhile: that is dropped."""
        queue = queue_of("a", "b", "c")
        await queue.drained()
        working = [await taken(queue), await taken(queue)]
        async with asyncio.TaskGroup() as group:
            drains = [group.create_task(queue.drained()) for _ in range(2)]
            await ManualClock().settle()
            queue.add("a")
            queue.close()
            queue.close()
            queue.done(working[0])
            await ManualClock().settle()
            assert not any(task.done() for task in drains)
            queue.done(working[1])
        assert await _refused(queue)


async def _refused(queue: WorkQueue[str]) -> bool:
    with pytest.raises(QueueClosedError, match="the closed queue 'test'"):
        await queue.get()
    return True


class Tally:
    """Metrics as a list of what was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []

    def added(self) -> None:
        self.told.append(("added", 0))

    def taken(self, waited: float) -> None:
        self.told.append(("taken", waited))

    def finished(self, seconds: float) -> None:
        self.told.append(("finished", seconds))

    def retried(self) -> None:
        self.told.append(("retried", 0))


async def test_metrics_are_told_of_what_happens() -> None:
    """Each key that begins to wait, each hand-out, each end of work, each retry; times from the clock."""
    clock, tally = ManualClock(), Tally()
    queue: WorkQueue[str] = WorkQueue("test", clock, random.Random(1), metrics=tally)
    queue.add("a")
    queue.add("a")
    await clock.advance(1)
    await queue.get()
    queue.add("a")
    await clock.advance(2)
    queue.retry("a")
    queue.done("a")
    assert tally.told == [("added", 0), ("taken", 1), ("added", 0), ("retried", 0), ("finished", 2)]


async def test_running_work_can_be_asked_for() -> None:
    """How long it has taken so far, in all and the longest."""
    clock = ManualClock()
    queue = queue_of("a", "b", clock=clock)
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (0, 0)
    await queue.get()
    await clock.advance(3)
    await queue.get()
    await clock.advance(2)
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (7, 5)
    queue.done("a")
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (2, 2)
