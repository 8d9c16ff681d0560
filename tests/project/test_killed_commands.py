"""`kill -9` during any command that writes leaves no half-written file, and the same command completes the work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from project import killed_commands


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.long)])
def test_killed_commands_can_be_repeated(tmp_path: Path, stride: int) -> None:
    """init, create api, delete api and update are killed before some, or each, of their changes, and repeated."""
    done = subprocess.run(
        [sys.executable, killed_commands.__file__, str(tmp_path), str(stride)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {name: int(count) for name, count in re.findall(r"(.*) (\d+)\n", done.stdout)}
    assert counts.keys() == {"init", "init NAME", "create api", "delete api", "update"}
    assert min(counts.values()) >= 2
