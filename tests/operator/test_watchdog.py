"""Who keeps the event loop from turning."""

import asyncio
import contextlib
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from navarch.errors import InvalidValueError
from navarch.observe.metrics import LoopMetrics
from navarch.observe.source_lines import SourceLine, culprit
from navarch.operator.watchdog import Blockage, Watchdog, log_blockage

LIMIT, BOUND = 0.2, 60.0


class Reports:
    """Keeps what is reported; the first report releases whoever blocks, the second ends the wait."""

    def __init__(self) -> None:
        self.all: list[Blockage] = []
        self.released = threading.Event()
        self.over = threading.Event()

    def __call__(self, blockage: Blockage) -> None:
        self.all.append(blockage)
        (self.over if blockage.over else self.released).set()

    async def ended(self) -> None:
        assert await asyncio.to_thread(self.over.wait, BOUND), "expected the end of the blockage to be reported"


class Beats(LoopMetrics):
    """Tells when the loop has answered."""

    def __init__(self) -> None:
        super().__init__()
        self.lags = asyncio.Queue[float]()

    def turned(self, lag: float) -> None:
        super().turned(lag)
        self.lags.put_nowait(lag)


@contextlib.asynccontextmanager
async def watched(report: Callable[[Blockage], None]) -> AsyncIterator[None]:
    """A watchdog that has begun to watch."""
    beats = Beats()
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        watch = group.create_task(Watchdog(limit=LIMIT, report=report, metrics=beats).run())
        await beats.lags.get()
        yield
        watch.cancel()


async def reconcile(released: threading.Event) -> int:
    """Blocks until it is found out; gives the line on which it did."""
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    assert released.wait(BOUND), "expected the blockage to be reported while it lasts"
    return line


async def test_report_names_task_function_and_line() -> None:
    """While the loop is blocked, and again with the total when it is not."""
    reports = Reports()
    async with watched(reports), asyncio.TaskGroup() as group:
        line = await group.create_task(reconcile(reports.released), name="memcached default/cache")
        await reports.ended()
    begun, over = reports.all
    assert (begun.task, begun.over, over.over) == ("memcached default/cache", False, True)
    assert begun.place == over.place == SourceLine(__file__, line, "reconcile")
    assert LIMIT <= begun.seconds <= over.seconds
    assert begun.stack[0].file.endswith("threading.py")
    assert str(begun).startswith("memcached default/cache has been blocking the event loop for ")


async def test_blocking_callback_has_no_task() -> None:
    """Its place is known all the same."""
    reports = Reports()

    def callback() -> None:
        assert reports.released.wait(BOUND), "expected the blockage to be reported while it lasts"

    async with watched(reports):
        asyncio.get_running_loop().call_soon(callback)
        await reports.ended()
    assert reports.all[0].task == ""
    assert reports.all[0].place.function.endswith("callback")


async def test_each_blockage_is_reported() -> None:
    """The watch goes on, even if a report fails."""
    first, second = Reports(), Reports()
    reports = iter((first, first, second, second))

    def report(blockage: Blockage) -> None:
        next(reports)(blockage)
        raise ValueError("a report that fails")

    async with watched(report):
        for expected in (first, second):
            await reconcile(expected.released)
            await expected.ended()
    assert [blockage.over for blockage in (*first.all, *second.all)] == [False, True, False, True]


async def test_no_thread_is_left() -> None:
    """When the watchdog ends."""
    before = set(threading.enumerate())
    async with watched(lambda _: None):
        assert len(set(threading.enumerate()) - before) == 1
    assert set(threading.enumerate()) == before


USER = SourceLine("/app/operator.py", 7, "reconcile")
LIBRARY = SourceLine("/venv/lib/python3.11/site-packages/requests/api.py", 14, "get")
INSTALLED = SourceLine("/venv/lib/python3.11/site-packages/memcached/main.py", 7, "reconcile")
STANDARD = SourceLine(threading.__file__, 300, "wait")
RUNTIME = SourceLine(inspect.getfile(Watchdog), 1, "work")


@pytest.mark.parametrize(
    ("stack", "found"),
    [
        ([STANDARD, LIBRARY, USER, RUNTIME], USER),
        ([STANDARD, LIBRARY, INSTALLED, RUNTIME, STANDARD], INSTALLED),
        ([STANDARD, RUNTIME], None),
    ],
)
def test_culprit_is_the_users_own_line(stack: list[SourceLine], found: SourceLine | None) -> None:
    """An operator that is installed as a package is told from the libraries it uses by who called it."""
    assert culprit(stack) == found


def test_blockage_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """A warning at the beginning, with what to do, and one at the end."""
    begun = Blockage("memcached default/cache", USER, (STANDARD, USER), 1.2345, over=False)
    log_blockage(begun)
    log_blockage(Blockage("memcached default/cache", USER, (STANDARD, USER), 3.0, over=True))
    first, last = caplog.records
    fields = first.fields  # type: ignore[attr-defined]
    assert first.levelno == logging.WARNING
    assert "plain function" in first.getMessage()
    assert (fields["task"], fields["place"], fields["seconds"]) == (begun.task, "/app/operator.py:7", 1.234)
    assert vars(last)["event"] == "the event loop turns again"


def test_limit_must_be_positive() -> None:
    """A watchdog without one would report everything."""
    with pytest.raises(InvalidValueError, match="more than 0 seconds"):
        Watchdog(limit=0)
