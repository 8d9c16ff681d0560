"""What docs/projects.md types is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from docs.pages import blocks

PAGE = "projects.md"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    """The command line, with a folder of its own for state."""
    with Program(tmp_path / "state", monkeypatch, capsys) as program:
        yield program


def as_of_older_templates(root: Path) -> None:
    """Changes the project as if older templates had made it, and the user had edited it since."""
    for path in ("Dockerfile", "Makefile", "README.md"):
        text = (root / path).read_text()
        older = text.replace("python:3.13", "python:3.12").replace("make test  ", "make tests ")
        older = older.replace("bin/mypy", "bin/mypy --pretty")
        (root / ".navarch/pristine" / path).write_text(older)
        (root / path).write_text(
            older.replace("make tests ", "make check ").replace("PYTHON ?= python3", "PYTHON ?= python")
        )


def test_console_shows_what_happens(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command is run in its order, and prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGE, "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            if command == "navarch update --dry-run":
                as_of_older_templates(Path.cwd())
            assert typed(command, program, monkeypatch) == shown, command


def typed(command: str, program: Program, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the command and returns what it prints."""
    words = shlex.split(command)
    if words[0] == "cd":
        monkeypatch.chdir(words[1])
        return ""
    if words[0] != "navarch":
        subprocess.run(["sh", "-c", command], timeout=60, check=True)
        return ""
    done = program.run(*words[1:])
    return done.stdout + done.stderr
