"""The demonstration, as a newcomer runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo_tells_its_story_to_the_end() -> None:
    """Every step comes true, in a process of its own, and nothing is left of it."""
    folders = os.pathsep.join(str(ROOT / "examples" / name) for name in ("demo", "memcached"))
    told = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo" / "memcached.py"],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    steps = [line.split(" s  ")[1] for line in told.stdout.splitlines() if " s  " in line]
    assert len(steps) == 7, told.stdout
    assert steps[-1] == "it is deleted, and everything goes with it"
