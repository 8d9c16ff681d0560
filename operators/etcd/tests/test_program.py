"""The operator as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ETCD_OPERATOR_HEALTH", "nowhere"),
        pytest.param("ETCD_OPERATOR_METRICS", "nowhere", marks=pytest.mark.long),
        pytest.param("ETCD_OPERATOR_NAMESPACES", "team-a,nowhere*", marks=pytest.mark.long),
        pytest.param("ETCD_OPERATOR_NAMESPACES", "nowhere,", marks=pytest.mark.long),
        pytest.param("ETCD_OPERATOR_MAX_SNAPSHOT", "nowhere", marks=pytest.mark.long),
    ],
)
def test_a_value_that_is_none_is_refused_in_a_sentence(variable: str, value: str) -> None:
    """With an example, and without a traceback."""
    run = subprocess.run(
        [sys.executable, "-m", "etcd_operator"],
        env={**os.environ, "PYTHONPATH": str(SOURCE), variable: value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 1
    assert "such as" in run.stderr
    assert "nowhere" in run.stderr
    assert "Traceback" not in run.stderr
