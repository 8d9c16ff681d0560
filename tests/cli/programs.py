"""The command line, as tests run it."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from navarch.cli.app import run
from navarch.client import Config, load


class Result(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


class Program:
    """The program, with a folder of its own for state; a `with`, after which no cluster runs that it has started."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.root = home / "navarch" / "clusters"
        monkeypatch.setenv("XDG_STATE_HOME", str(home))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.delenv("KUBECONFIG", raising=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for row in self.status():
            self.run("cluster", "down", "--name", row["name"])

    def run(self, *arguments: str) -> Result:
        """In a thread of its own: tests have a loop, and commands start one."""
        self._monkeypatch.setattr(sys, "argv", ["navarch", *arguments])
        with ThreadPoolExecutor(1) as thread:
            code = thread.submit(run).result()
        return Result(code, *self._capsys.readouterr())

    def json(self, *arguments: str, returncode: int = 0) -> Any:
        """What a command prints for programs."""
        result = self.run(*arguments, "--output", "json")
        assert result.returncode == returncode, result.stderr
        return json.loads(result.stdout)

    def kubeconfig(self, name: str = "dev") -> Config:
        """How the cluster is reached."""
        return load(self.root / name / "kubeconfig")

    def status(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("cluster", "status")
        return found
