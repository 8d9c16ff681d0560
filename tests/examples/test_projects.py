"""examples/memcached and operators/etcd are projects like any other: the commands of the SDK work on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from navarch.project.generate import generate
from navarch.project.project import Project
from navarch.project.scaffold.update import update

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "memcached"

of_each = pytest.mark.parametrize("folder", ["examples/memcached", "operators/etcd"])


@of_each
def test_generated_files_follow_from_the_code(folder: str) -> None:
    """`navarch generate --check` finds nothing to write, and no edited file."""
    reports = generate(Project.find(ROOT / folder), check=True)
    assert {part: (each.written, each.removed, each.edited) for part, each in reports.items()} == {
        part: ([], [], []) for part in reports
    }


def test_newer_templates_can_be_merged() -> None:
    """`navarch update --dry-run` finds no conflict with the edits of the example; run `navarch update` in it otherwise."""
    assert update(Project.find(EXAMPLE), dry_run=True).conflicts == []


def test_records_of_an_operator_older_than_the_templates_are_whole() -> None:
    """`navarch update` leaves alone what the etcd operator removed; its own program and settings are for people to merge."""
    report = update(Project.find(ROOT / "operators/etcd"), dry_run=True)
    assert {*report.conflicts} <= {"pyproject.toml", *(f"src/etcd_operator/__{each}__.py" for each in ("init", "main"))}
    assert report.removed == []


def test_tests_pass_under_exactly_the_generated_roles() -> None:
    """The project's own tests, with the operator's permissions enforced by the API server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    files = sorted(str(each.relative_to(EXAMPLE)) for each in (EXAMPLE / "tests").glob("*.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--as-operator", *files]
    run = subprocess.run(
        command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "5 passed" in run.stdout
