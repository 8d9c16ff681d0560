"""What a program that runs an operator writes, and in which form."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from navarch import Operator, run
from navarch.observe import logs


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


def ended_with_one() -> None:
    with pytest.raises(SystemExit) as ended:
        run(Operator("shop"))
    assert ended.value.code == 1


def test_program_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, without a traceback; logs are set up for it."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    ended_with_one()
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "cannot run"
    assert "KUBECONFIG" in json.loads(line)["why"]


def test_logs_that_were_set_up_before_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So `logs.setup(level="DEBUG")`, or a configuration of one's own, is not undone."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logs.setup("console", level="DEBUG")
    ended_with_one()
    assert logging.getLogger().level == logging.DEBUG
    assert not capsys.readouterr().err.startswith("{")
