"""The demonstrations, as a newcomer runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shake import reach

ROOT = Path(__file__).parents[2]


def told(demo: str, *folders: str) -> str:
    """What a demo prints, in a process of its own; it must come to its end."""
    path = os.pathsep.join((*(str(ROOT / folder) for folder in ("examples/demo", *folders)), *reach.folders()))
    run = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo" / demo],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def steps_of(printed: str) -> list[str]:
    """The steps that a demo tells of."""
    return re.findall(r"^ *\d+\.\d\d s  (.*)$", printed, re.MULTILINE)


def counted(printed: str, what: str) -> int:
    """A number of the report."""
    found = re.search(rf"^{what} +([\d,]+) *$", printed, re.MULTILINE)
    assert found is not None, printed
    return int(found[1].replace(",", ""))


@pytest.mark.timeout(600)
@pytest.mark.long
def test_a_cluster_of_etcd_is_hurt_scaled_backed_up_and_restored() -> None:
    """Every step comes true, and no acknowledged write is lost; the report says what was counted."""
    printed = told("etcd_cluster.py", "operators/etcd/src")
    steps = steps_of(printed)
    assert len(steps) == 11, steps
    assert steps[-1].startswith("every acknowledged write is there again")
    assert counted(printed, "writes that were acknowledged") == counted(printed, "of these read again at the end") > 200
    assert counted(printed, "of these lost") == 0


@pytest.mark.real
@pytest.mark.timeout(600)
def test_memcached_is_scaled_and_hurt() -> None:
    """Every step comes true."""
    steps = steps_of(told("memcached.py", "examples/memcached/src"))
    assert len(steps) == 7, steps
    assert steps[-1] == "it is deleted, and everything goes with it"


def test_a_demo_that_cannot_go_on_says_so_in_a_sentence(tmp_path: Path) -> None:
    """And how far it came; there is no traceback."""
    story = tmp_path / "story.py"
    story.write_text(
        "import sys\n"
        "from stage import Stage, perform\n"
        "async def nothing(): return ''\n"
        "async def tell():\n"
        "    stage = Stage('a story', nothing)\n"
        "    async with stage.shown():\n"
        "        with stage.step('pigs fly'):\n"
        "            raise AssertionError('expected wings, got none')\n"
        "sys.exit(perform(tell()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "examples" / "demo")}
    run = subprocess.run(
        [sys.executable, story], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 1
    assert run.stderr == "the demo could not go on: expected wings, got none\n"
    assert "pigs fly: this was not reached" in run.stdout
