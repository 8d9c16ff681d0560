"""The operator as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"


@pytest.mark.parametrize("variable", ["ETCD_OPERATOR_HEALTH", "ETCD_OPERATOR_METRICS"])
def test_an_address_that_is_none_is_refused_in_a_sentence(variable: str) -> None:
    """With an example, and without a traceback."""
    run = subprocess.run(
        [sys.executable, "-m", "etcd_operator"],
        env={**os.environ, "PYTHONPATH": str(SOURCE), variable: "nowhere"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 1
    assert "such as" in run.stderr
    assert "nowhere" in run.stderr
    assert "Traceback" not in run.stderr
