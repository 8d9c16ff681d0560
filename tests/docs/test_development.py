"""What docs/development.md shows is so."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from cli.programs import Program
from docs.pages import DOCS, blocks
from navarch.cli.doctor import print_findings
from navarch.cli.run_display import LiveDisplay, panel
from navarch.project.dev.messages import ControllerState, LoadFailed, OperatorState, WatchState
from navarch.project.dev.run_model import RunModel
from navarch.project.doctor.finding import Finding
from run_projects import SECONDS, NavarchRun

VIEW, FAILURE, DOCTOR = blocks("development.md", "text")


def plain(width: int) -> Console:
    """A console without colours that keeps what is printed."""
    return Console(file=io.StringIO(), width=width, color_system=None, highlight=False)


def printed(console: Console) -> list[str]:
    """The lines on the console."""
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_view_is_the_one_that_is_shown() -> None:
    """To the letter, without the line that separates it from the log."""
    model = RunModel(operator="cache-operator", cluster="default", reload=True, began=0.0, phase="running")
    model.reloads, model.reload_seconds = 3, 0.42
    watches = [
        WatchState(kind, "", "watching", 2.0, 7) for kind in ("memcacheds.cache.example.com", "deployments.apps")
    ]
    for at, done in ((120.0, 600), (121.0, 610)):
        controller = ControllerState("cache-operator/memcached", 3, 2, 16, done, 1, done * 0.05)
        model.take(OperatorState(at, "127.0.0.1:6443", None, [controller], watches))
    console = plain(80)
    console.print(panel(model, 125.0, 80, 24))
    assert printed(console)[1:] == VIEW.splitlines()


def test_the_failure_is_the_one_that_is_shown() -> None:
    """To the letter."""
    console = plain(120)
    display = LiveDisplay(console)
    place = "src/cache_operator/controllers/memcached.py"
    display.note("info", f"{place} changed; reloading")
    failure = LoadFailed(
        f"{place}:14", "SyntaxError: '(' was never closed", "    await ctx.apply(deployment(memcached)"
    )
    display.failure(failure, "the code of before keeps running; save the file again")
    display.flush()
    assert printed(console) == FAILURE.splitlines()


def test_the_findings_are_printed_as_shown() -> None:
    """Each on its line, with the fix below."""
    found = [
        Finding(check.strip(), state, detail, fix)
        for state, check, detail, fix in re.findall(
            r"^(ok|warn|fail) +((?:extra |generated )?\S+) +(.*)(?:\n +-> (.*))?$", DOCTOR, re.MULTILINE
        )
    ]
    console = plain(120)
    print_findings(found, console)
    assert printed(console) == DOCTOR.splitlines()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    """The command line, whose clusters end with the test."""
    with Program(tmp_path / "state", monkeypatch, capsys) as program:
        yield program


@pytest.mark.long
def test_page_runs_from_an_empty_folder(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project of the page is scaffolded, runs on a cluster with its CRDs, and has the checks that the page lists."""
    monkeypatch.chdir(tmp_path)
    scaffold, running = blocks("development.md", "sh")
    for line in scaffold.splitlines():
        command, *arguments = shlex.split(line)
        if command == "cd":
            os.chdir(arguments[0])
        else:
            answers = ("--resource", "--controller") if "api" in arguments else ()
            subprocess.run(
                [sys.executable, "-m", command, *arguments, *answers],
                stdin=subprocess.DEVNULL,
                timeout=SECONDS,
                check=True,
            )
    _, _, *arguments = shlex.split(running)
    with NavarchRun(Path.cwd(), *arguments) as run:
        run.wait_for("installed CRD")
        environment = {**os.environ, "KUBECONFIG": str(program.root / "default" / "kubeconfig")}
        done = subprocess.run(
            [sys.executable, "-m", "navarch", "doctor", "--output", "json"],
            env=environment,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        assert run.end() == 0
    found = {each["check"]: each["state"] for each in json.loads(done.stdout)}
    assert (found["CRDs"], found["operator"], found["permissions"]) == ("ok", "ok", "ok")
    listed = re.findall(r"^\| ([a-zA-Z, ]+) \|", (DOCS / "development.md").read_text(), re.MULTILINE)
    named = {name.strip() for row in listed for name in row.removeprefix("extra ").split(",")}
    assert {name.removeprefix("extra ") for name in found} <= named
