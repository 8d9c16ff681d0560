"""examples/memcached is a project like any other: the commands of the SDK work on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from navarch.project.generate import generate
from navarch.project.project import Project
from navarch.project.scaffold.update import update

EXAMPLE = Path(__file__).parents[2] / "examples" / "memcached"


def test_generated_files_follow_from_the_code() -> None:
    """`navarch generate --check` finds nothing to write, and no edited file."""
    reports = generate(Project.find(EXAMPLE), check=True)
    assert {part: (each.written, each.removed, each.edited) for part, each in reports.items()} == {
        part: ([], [], []) for part in reports
    }


def test_newer_templates_can_be_merged() -> None:
    """`navarch update --dry-run` finds the records of the project, and no conflict with its edits."""
    assert update(Project.find(EXAMPLE), dry_run=True).conflicts == []


def test_tests_pass_under_exactly_the_generated_roles() -> None:
    """The project's own tests, with the operator's permissions enforced by the API server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--as-operator"]
    run = subprocess.run(
        command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "5 passed" in run.stdout
