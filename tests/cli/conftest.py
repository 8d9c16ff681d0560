"""The command line with a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    """What it has started has ended when the test has."""
    with Program(tmp_path, monkeypatch, capsys) as program:
        yield program
