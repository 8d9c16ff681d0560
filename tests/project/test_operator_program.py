"""The code of a project is imported as it is on disk, and a failure names its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from navarch.errors import DefinitionError
from navarch.project.dev.operator_program import describe_failure, fresh_code_hook
from navarch.project.project import Project
from run_projects import write_project


def imported(source: Path, name: str) -> Any:
    """Executes a module of the folder and returns its `VALUE`."""
    spec = fresh_code_hook(source)(str(source)).find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    names: dict[str, Any] = {}
    exec(spec.loader.get_code(name), names)
    return names["VALUE"]


def test_code_that_is_saved_twice_in_a_second_is_imported_anew(tmp_path: Path) -> None:
    """Python's caches know seconds and sizes only: they are neither read nor written."""
    file = tmp_path / "module.py"
    file.write_text("VALUE = 1\n")
    os.utime(file, (1, 1))
    assert imported(tmp_path, "module") == 1
    file.write_text("VALUE = 2\n")
    os.utime(file, (1, 1))
    assert imported(tmp_path, "module") == 2
    assert not (tmp_path / "__pycache__").exists()


def test_other_folders_keep_their_caches(tmp_path: Path) -> None:
    """The hook is for the project alone."""
    with pytest.raises(ImportError):
        fresh_code_hook(tmp_path / "src")(str(tmp_path / "other"))


def failure(code: str, root: Path) -> BaseException:
    """Returns the error of the code, as if it were in the project's controller."""
    file = write_project(root, code)
    try:
        exec(compile(code, str(file.resolve()), "exec"), {})
    except BaseException as error:  # noqa: BLE001 - any may be raised
        return error
    raise AssertionError(f"expected an error of {code!r}")


@pytest.mark.parametrize(
    ("code", "line", "cause"),
    [
        ("x = 1\ny = (\n", 2, "SyntaxError: '(' was never closed"),
        ("import os\nos.nothing\n", 2, "AttributeError: module 'os' has no attribute 'nothing'"),
        ("import no_such_module\n", 1, "ModuleNotFoundError: No module named 'no_such_module'; is it installed"),
        ("raise SystemExit(3)\n", 1, "SystemExit: 3"),
    ],
)
def test_failure_names_the_line_of_the_project(tmp_path: Path, code: str, line: int, cause: str) -> None:
    """Relative to the project, whatever raised it."""
    error = failure(code, tmp_path)
    found = describe_failure(error, Project.find(tmp_path))
    assert found.place == f"src/probe_operator/controllers/probe.py:{line}"
    assert found.cause.startswith(cause)


def test_wrong_declaration_is_told_in_its_own_words(tmp_path: Path) -> None:
    """Its text has the remedy already."""
    write_project(tmp_path)
    found = describe_failure(DefinitionError("expected this, got that; do so"), Project.find(tmp_path))
    assert (found.place, found.cause) == ("", "expected this, got that; do so")
