"""Tasks that do not outlive their owner."""

import asyncio

import pytest

from navarch._base.clock import ManualClock
from navarch._base.tasks import TaskSet, acquire, cancel_and_wait, is_cancelled, one_ahead, unless, within


async def test_within_returns_the_result_and_leaves_no_alarm() -> None:
    """Work that is in time gives its result, and the clock has no sleeper left."""
    clock = ManualClock()

    async def work() -> int:
        await clock.sleep(1)
        return 7

    async with asyncio.TaskGroup() as group:
        task = group.create_task(within(clock, 5, work()))
        await clock.advance(1)
    assert task.result() == 7
    assert clock.sleeping == 0


class SleepLog(ManualClock):
    """Notes how long tasks sleep; `skipped` is time that passes without an end of the turn."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []
        self.skipped = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.skipped

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await super().sleep(seconds)


async def test_within_needs_no_alarm_for_work_that_does_not_wait() -> None:
    """Work that ends at once costs no sleeper, whether it returns or raises."""

    async def work(divisor: int) -> float:
        return 14 / divisor

    clock = SleepLog()
    assert await within(clock, 5, work(2)) == 7
    with pytest.raises(ZeroDivisionError):
        await within(clock, 5, work(0))
    assert clock.sleeps == []


async def test_within_counts_the_time_before_the_first_wait() -> None:
    """Work that computes for long before it waits has that much less time left."""
    clock = SleepLog()

    async def work() -> None:
        clock.skipped = 4.0
        await clock.sleep(100)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(within(clock, 5, work()))
        await clock.until_sleeping(2)
        assert clock.sleeps == [100, 1]
        task.cancel()


async def test_within_takes_along_work_that_has_just_begun() -> None:
    """A caller that is cancelled before there is an alarm leaves no task behind."""
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(within(ManualClock(), 5, work()))
        asyncio.get_running_loop().call_soon(task.cancel)  # after the first turn of `within`, before its second
    assert task.cancelled()
    assert ended == ["work"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_within_raises_what_the_work_raises() -> None:
    """A failure of the work is the caller's failure."""

    async def work() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await within(ManualClock(), 5, work())


async def test_within_cancels_late_work_and_waits_for_its_end() -> None:
    """Late work is cancelled and has cleaned up before the time-out is raised."""
    clock = ManualClock()
    ended: list[float] = []

    async def work() -> None:
        try:
            await clock.sleep(100)
        finally:
            ended.append(clock.monotonic())

    async def caller() -> None:
        with pytest.raises(TimeoutError, match="within 5 s"):
            await within(clock, 5, work())
        assert ended == [5.0]

    async with asyncio.TaskGroup() as group:
        group.create_task(caller())
        await clock.until_sleeping(2)
        await clock.advance(5)


async def test_within_takes_the_work_along_when_the_caller_is_cancelled() -> None:
    """Cancelling the caller cancels the work too."""
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(within(clock, 5, clock.sleep(100)))
        await clock.until_sleeping(2)
        task.cancel()
        await clock.settle()
        assert clock.sleeping == 0
    assert task.cancelled()


async def test_cancel_and_wait_returns_when_the_task_has_ended() -> None:
    """The task is over, and nothing was raised."""
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(clock.sleep(100))
        await clock.until_sleeping()
        await cancel_and_wait(task)
        assert task.cancelled()
    await cancel_and_wait()


async def test_late_work_that_fails_on_the_way_out_is_still_a_timeout() -> None:
    """A failure while cleaning up does not hide that the time was up."""
    clock = ManualClock()

    async def clumsy() -> None:
        try:
            await clock.sleep(100)
        finally:
            raise RuntimeError("clumsy")

    async def caller() -> None:
        with pytest.raises(TimeoutError):
            await within(clock, 5, clumsy())

    async with asyncio.TaskGroup() as group:
        group.create_task(caller())
        await clock.until_sleeping(2)
        await clock.advance(5)


async def test_acquire_gives_back_what_a_cancelled_caller_cannot_take() -> None:
    """The work is not interrupted, and its result is released before the cancellation goes on."""
    clock = ManualClock()
    released: list[str] = []

    async def work() -> str:
        await clock.sleep(1)
        return "process"

    async def release(result: str) -> None:
        released.append(result)

    async with asyncio.TaskGroup() as group:
        kept = group.create_task(acquire(work(), release))
        lost = group.create_task(acquire(work(), release))
        await clock.until_sleeping(2)
        lost.cancel()
        await clock.settle()
        assert not lost.done()
        await clock.advance(1)
    assert (kept.result(), lost.cancelled(), released) == ("process", True, ["process"])


async def test_acquire_has_nothing_to_give_back_if_the_work_fails() -> None:
    """Its failure is the caller's; a cancelled caller stays cancelled."""
    clock = ManualClock()

    async def work() -> None:
        await clock.sleep(1)
        raise LookupError("gone")

    async def release(_: None) -> None:
        raise AssertionError("there is nothing to release")

    async def caller() -> None:
        with pytest.raises(LookupError, match="gone"):
            await acquire(work(), release)

    async with asyncio.TaskGroup() as group:
        group.create_task(caller())
        lost = group.create_task(acquire(work(), release))
        await clock.until_sleeping(2)
        lost.cancel()
        await clock.advance(1)
    assert lost.cancelled()


async def test_unless_returns_the_result_and_stops_waiting_for_the_end() -> None:
    """Work that is done first gives its result."""
    clock = ManualClock()

    async def work() -> int:
        return 7

    assert await unless(clock.sleep(5), work()) == 7
    assert clock.sleeping == 0


async def test_unless_cancels_the_work_when_it_is_stopped_and_waits_for_its_end() -> None:
    """What the work does on its way out is done before this returns."""
    clock = ManualClock()
    ended: list[float] = []

    async def work() -> None:
        try:
            await clock.sleep(60)
        finally:
            await clock.sleep(2)
            ended.append(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(unless(clock.sleep(5), work()))
        await clock.advance(6)
        assert not task.done()
        await clock.advance(2)
    assert task.result() is None
    assert ended == [7]


async def test_unless_raises_what_either_raises() -> None:
    """The work's failure, and the failure of what was to stop it."""

    async def fails() -> None:
        raise LookupError("gone")

    clock = ManualClock()
    with pytest.raises(LookupError):
        await unless(clock.sleep(5), fails())
    with pytest.raises(LookupError):
        await unless(fails(), clock.sleep(5))
    assert clock.sleeping == 0


async def test_cancellation_is_told_from_an_error_that_looks_like_one() -> None:
    """Only who was told to end is cancelled, also if it kept the error to itself."""
    seen: list[bool] = []

    async def kept() -> None:
        try:
            raise asyncio.CancelledError
        except asyncio.CancelledError:
            seen.append(is_cancelled())
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append(is_cancelled())
        seen.append(is_cancelled())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(kept())
        await ManualClock().settle()
        task.cancel()
    assert seen == [False, True, True]


async def test_one_ahead_asks_for_the_next_while_the_last_is_used() -> None:
    """Results come in order, one question is always on its way, and the last one is taken back."""
    asked: list[int] = []
    taken_back: list[int] = []

    async def ask() -> int:
        number = len(asked)
        asked.append(number)
        try:
            if number == 3:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            taken_back.append(number)
            raise
        return number

    async with one_ahead(ask) as following:
        for number in range(3):
            assert await following() == number
            assert asked == list(range(number + 2))
    assert taken_back == [3]


async def test_task_set_waits_for_the_tasks_that_run() -> None:
    """`wait` returns when they have ended by themselves; without tasks at once."""
    tasks, clock, ended = TaskSet(), ManualClock(), []
    await tasks.wait()

    async def work() -> None:
        await clock.sleep(1)
        ended.append("work")

    tasks.start(work(), "work")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(tasks.wait())
        await clock.until_sleeping()
        assert not waiting.done()
        await clock.advance(1)
    assert ended == ["work"]
