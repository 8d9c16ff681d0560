"""Delays that find what counts on an order that nobody promised."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from navarch._base.clock import SystemClock
from shake import cli, points
from shake.points import POINTS, Point, faults_of
from shake.reach import environment
from shake.weather import Odds, Weather

ALWAYS = Odds(often=1.0, seconds=0.01, rarely=0.0)
SOME = Odds(often=0.3, seconds=0.1, rarely=0.05)


class Lines:
    """What is delayed, with as many lines as one wants, which come one by one."""

    def __init__(self) -> None:
        self.given = 0

    async def next(self) -> int:
        await SystemClock().sleep(0.002)
        self.given += 1
        return self.given


def module() -> ModuleType:
    """A module with a class of its own, which a test may change."""
    made = ModuleType("streams")
    made.Lines = type("Lines", (), dict(vars(Lines)))  # type: ignore[attr-defined]
    return made


def drawn(weather: Weather, count: int = 50) -> list[float]:
    return [weather.delay("here", SOME) for _ in range(count)]


def test_everything_that_is_to_come_late_is_there() -> None:
    """Whoever renames a method that is delayed is told so: nothing would be delayed otherwise."""
    assert faults_of(POINTS) == []


def test_what_is_missing_is_named() -> None:
    """A module, a class, a method, and a method that does not wait."""
    missing = [
        POINTS[0]._replace(module="navarch.client.nothing"),
        POINTS[0]._replace(owner="Rows"),
        POINTS[0]._replace(method="following"),
        POINTS[0]._replace(method="__init__"),
    ]
    faults = faults_of(tuple(missing))
    assert "navarch.client.nothing" in faults[0]
    assert "expected navarch.client.watch.Rows.next to be a coroutine, got nothing of that name" in faults[1]
    assert "expected navarch.client.watch.BodyLines.following to be a coroutine, got nothing of that name" in faults[2]
    assert "expected navarch.client.watch.BodyLines.__init__ to be a coroutine, got <function" in faults[3]


def test_nothing_is_run_where_something_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run without delays would pass, and say nothing."""
    monkeypatch.setattr(cli, "POINTS", (POINTS[0]._replace(method="following"),))
    assert cli.main(["--seed=1", "--version"]) == 2
    assert "navarch.client.watch.BodyLines.following" in capsys.readouterr().err


def test_same_seed_has_same_delays() -> None:
    """And another one has others; some are long, and most things are in time."""
    many = drawn(Weather("1", 1.0), 1000)
    assert drawn(Weather("1", 1.0), 1000) == many != drawn(Weather("2", 1.0), 1000)
    assert sum(each == 0 for each in many) > 500
    assert any(each >= 0.5 for each in many)
    assert drawn(Weather("1", 2.0), 1000) == [2 * each for each in many]


def test_delays_of_a_test_are_those_that_it_has_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many others came before it."""
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/a.py::test_a (call)")
    alone = drawn(Weather("1", 1.0))
    weather = Weather("1", 1.0)
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/b.py::test_b (call)")
    others = drawn(weather)
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/a.py::test_a (setup)")
    assert drawn(weather) == alone != others


@pytest.mark.parametrize("point", POINTS[-2:], ids=lambda point: point.owner)
def test_test_that_owns_the_time_has_no_delays(point: Point, monkeypatch: pytest.MonkeyPatch) -> None:
    """It moves time on when everything has had its turn; the next test has delays again."""
    weather = Weather("1", 1.0)
    clock = ModuleType("clock")
    setattr(clock, point.owner, type(point.owner, (), {point.method: lambda clock: None}))
    point.apply(clock, weather)
    getattr(getattr(clock, point.owner)(), point.method)()
    assert not any(drawn(weather))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/b.py::test_b (call)")
    assert any(drawn(weather))


async def test_what_is_delayed_comes_late() -> None:
    """By as much as was drawn, at least; and no later if it is changed twice."""
    streams = module()
    point = Point("streams", "Lines", "next", points.late(ALWAYS, points._line))
    point.apply(streams, Weather("1", 1.0))
    point.apply(streams, Weather("1", 1000.0))
    lines, loop = streams.Lines(), asyncio.get_running_loop()
    began = loop.time()
    assert [await lines.next() for _ in range(3)] == [1, 2, 3]
    same = Weather("1", 1.0)
    assert loop.time() - began >= sum(same.delay("after streams.Lines.next", ALWAYS) for _ in range(3)) > 0


async def test_line_that_was_not_handed_over_comes_next() -> None:
    """Whoever gives up waiting loses nothing: a late line is no lost one."""
    read = asyncio.Event()

    def draw(when: str) -> float:
        read.set()
        return 1000.0

    lines, late = Lines(), points._line(Lines.next, draw)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(late(lines))
        await read.wait()
        waiting.cancel()
    assert await late(lines) == 1


def test_tests_are_reached(tmp_path: Path) -> None:
    """In the processes of pytest too, whose own import hook comes before any other."""
    probes = [f"    import {each.module}\n    assert {each.name}.__wrapped__" for each in POINTS]
    (tmp_path / "test_probe.py").write_text("\n".join(["def test_reached():", *probes]))
    (tmp_path / "pytest.ini").write_text("[pytest]")
    command = [sys.executable, "-m", "shake", "--seed=1", "--workers=0", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count(f"make shake SEED=1 STRENGTH=1 ARGS={tmp_path}\n") == 2


def test_processes_that_a_test_starts_are_reached() -> None:
    """Each method that is delayed is another one there, without an import that the program did not make."""
    program = "\n".join(
        [
            "import sys",
            "assert 'navarch' not in sys.modules",
            *(f"import {each.module}\nprint({each.name}.__wrapped__.__qualname__)" for each in POINTS),
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment("1", 1.0, os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [f"{each.owner}.{each.method}" for each in POINTS]
