"""Background tasks that are restarted when they fail."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from navarch._base.clock import ManualClock
from navarch._base.supervisor import Supervisor, TaskStatus, cause_of
from navarch.errors import ConfigError


class Part:
    """Fails in each run as `faults` say, one after the other, and then runs on."""

    def __init__(self, clock: ManualClock, *faults: BaseException | None, seconds: float = 0.0) -> None:
        self._clock = clock
        self._faults = list(faults)
        self._seconds = seconds
        self.runs: list[float] = []

    async def run(self) -> None:
        self.runs.append(self._clock.monotonic())
        if not self._faults:
            await asyncio.Event().wait()
        await self._clock.sleep(self._seconds)
        if (fault := self._faults.pop(0)) is not None:
            raise fault


def supervisor(clock: ManualClock) -> Supervisor:
    return Supervisor(clock, random.Random(1))


async def test_a_task_that_fails_is_restarted_with_growing_delays() -> None:
    """Each delay is at most twice the last one, and each restart is counted."""
    clock = ManualClock()
    part, supervised = Part(clock, *(ConfigError("bad") for _ in range(8))), supervisor(clock)
    supervised.task("part", part.run).start()
    await clock.advance(200.0)
    waits = [after - before for before, after in zip(part.runs, part.runs[1:], strict=False)]
    for number, wait in enumerate(waits):
        upper = min(2.0**number, 30.0)
        assert upper * 0.8 <= wait <= upper
    assert supervised.statuses() == [TaskStatus(name="part", state="running", restarts=8)]
    await supervised.stop()
    assert supervised.statuses() == [TaskStatus(name="part", state="stopped", restarts=8)]


async def test_a_task_that_ran_well_begins_with_short_delays_again() -> None:
    """What failed yesterday does not count today."""
    clock = ManualClock()
    part, supervised = Part(clock, *(ConfigError("bad") for _ in range(4)), seconds=70.0), supervisor(clock)
    supervised.task("part", part.run).start()
    await clock.advance(400.0)
    assert len(part.runs) == 5
    assert all(after - before <= 71.0 for before, after in zip(part.runs, part.runs[1:], strict=False))
    await supervised.stop()


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (ConfigError("expected a list"), "expected a list"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (ValueError("odd\nlines"), "ValueError: odd lines (test_supervisor.py:"),
        (asyncio.CancelledError(), "CancelledError (test_supervisor.py:"),
        (SystemExit(3), "SystemExit: 3 (test_supervisor.py:"),
        (ExceptionGroup("several", [ExceptionGroup("", [ConfigError("the first")])]), "the first"),
        (None, "it returned, though it should run until it is cancelled"),
    ],
)
async def test_whatever_ends_a_task_is_its_cause_while_it_backs_off(fault: BaseException | None, cause: str) -> None:
    """Also a cancellation that nobody asked for, a call of exit, and a return."""
    clock = ManualClock()
    supervised = supervisor(clock)
    supervised.task("part", Part(clock, fault).run).start()
    await clock.settle()
    (status,) = supervised.statuses()
    assert status.state == "backing off"
    assert status.cause.startswith(cause)
    assert not status.is_well
    await clock.advance(1.0)
    assert [(each.state, each.restarts) for each in supervised.statuses()] == [("running", 1)]
    await supervised.stop()


async def test_a_failure_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """With the task, the cause and what comes next; the traceback is for whoever asks for it."""
    clock = ManualClock()
    supervised = supervisor(clock)
    with caplog.at_level(logging.INFO, "navarch.supervisor"):
        supervised.task("audit", Part(clock, ValueError("odd")).run).start()
        await clock.settle()
    (record,) = caplog.records
    assert record.getMessage().startswith("audit failed: ValueError: odd (test_supervisor.py:")
    assert "; restart 1 in " in record.getMessage()
    assert record.exc_info is None
    await supervised.stop()


async def test_a_task_that_fails_harms_no_other() -> None:
    """Neither in the background nor in a TaskGroup, which would cancel the others."""
    clock = ManualClock()
    bad, good, supervised = Part(clock, ValueError()), Part(clock), supervisor(clock)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(supervised.task(str(part), part.run).supervise()) for part in (bad, good)]
        await clock.advance(5.0)
        assert (len(bad.runs), len(good.runs)) == (2, 1)
        for task in tasks:
            task.cancel()


async def test_a_task_that_is_stopped_while_it_backs_off_does_not_come_back() -> None:
    """It ends at once."""
    clock = ManualClock()
    part, supervised = Part(clock, ValueError(), ValueError()), supervisor(clock)
    task = supervised.task("part", part.run).start()
    await clock.settle()
    await task.stop()
    await clock.advance(100.0)
    assert len(part.runs) == 1
    assert [each.state for each in supervised.statuses()] == ["stopped"]


async def test_work_to_be_done_once_is_tried_until_it_is_done() -> None:
    """And is no failure then."""
    clock = ManualClock()
    part, supervised = Part(clock, ValueError(), None), supervisor(clock)
    supervised.task("part", part.run, once=True).start()
    await clock.advance(100.0)
    assert len(part.runs) == 2
    assert supervised.statuses() == [TaskStatus(name="part", state="stopped", restarts=1)]


async def test_a_task_that_runs_can_say_what_is_wrong_with_it() -> None:
    """As one whose disk is full."""
    clock, faults = ManualClock(), ["the disk is full"]
    supervised = supervisor(clock)
    supervised.task("audit", Part(clock).run, check=lambda: faults[0] or None).start()
    assert supervised.statuses() == [TaskStatus(name="audit", state="failing", cause="the disk is full")]
    faults[0] = ""
    assert [status.is_well for status in supervised.statuses()] == [True]
    await supervised.stop()


async def test_restarts_of_a_task_that_is_made_anew_count_on() -> None:
    """Those of a part whose owner was restarted."""
    clock = ManualClock()
    supervised = supervisor(clock)
    for _ in range(2):
        task = supervised.task("part", Part(clock, ValueError()).run).start()
        await clock.advance(5.0)
        await task.stop()
    assert [status.restarts for status in supervised.statuses()] == [2]


def test_a_cause_is_short_and_can_be_written_anywhere() -> None:
    """Whatever the error's text is made of."""
    assert cause_of(ConfigError("x" * 5000)) == "x" * 500 + "..."
    assert cause_of(ConfigError("\udcff")) == "\\udcff"
