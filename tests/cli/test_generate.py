"""`navarch generate` reports to people and to programs, and fails where files are not up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from project.small_project import CONTROLLER, forgotten_code, write_project


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, in which the commands run."""
    folder = tmp_path / "project"
    write_project(folder)
    monkeypatch.chdir(folder)
    with forgotten_code():
        yield folder


def test_check_writes_nothing_and_names_stale_files(program: Program, root: Path) -> None:
    """And passes after the files are written."""
    stale = program.run("generate", "install", "--check")
    assert stale.returncode == 1
    assert "got stale ones: dist/install.yaml; run: navarch generate" in stale.stderr
    assert not (root / "dist").exists()
    assert program.run("generate", "install").returncode == 0
    assert program.run("generate", "install", "--check").returncode == 0


def test_edited_file_is_named(program: Program, root: Path) -> None:
    """With what to do about it."""
    program.run("generate")
    (root / "config/rbac/role.yaml").write_text("mine\n")
    told = program.run("generate")
    assert told.returncode == 1
    assert "left alone: config/rbac/role.yaml; move your changes to config/patches" in told.stderr
    assert (root / "config/rbac/role.yaml").read_text() == "mine\n"


def test_programs_get_json_although_the_code_prints(program: Program, root: Path) -> None:
    """What the project's code prints goes to standard error."""
    file = root / CONTROLLER
    file.write_text(file.read_text() + "print('hello')\n")
    found = program.json("generate", "crd")
    assert found["crd"]["written"] == [
        "config/crd/bases/cache.example.com_memcacheds.yaml",
        "config/crd/kustomization.yaml",
    ]


def test_code_that_fails_is_one_line(program: Program, root: Path) -> None:
    """The file, the line and the exception."""
    (root / CONTROLLER).write_text("\n1 / 0\n")
    told = program.run("generate", "crd")
    assert told.returncode == 1
    assert told.stderr == f"error: {root / CONTROLLER}:2: ZeroDivisionError: division by zero\n"


def test_folder_without_a_project_is_told(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that begins one."""
    monkeypatch.chdir(tmp_path)
    assert "navarch init NAME" in program.run("generate").stderr
