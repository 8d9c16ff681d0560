"""`make versions`: which Pythons it finds, what it reports, and the kernel without user namespaces that it can run them on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import versions

ROOT = Path(__file__).parent.parent
REFUSED = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); print(libc.unshare(0x10000000), ctypes.get_errno(), os.geteuid() > 0)"


def _interpreter(path: Path, says: str, code: int = 0) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_interpreter_that_does_not_run_is_passed_over_for_one_of_pyenv(tmp_path: Path) -> None:
    """A shim of pyenv for a version that is not chosen fails; the newest patch release in pyenv's folders is taken."""
    shim = _interpreter(tmp_path / "shims" / "python3.12", "pyenv: python3.12: command not found", code=127)
    _interpreter(tmp_path / "versions" / "3.12.9" / "bin" / "python3.12", "3.12 final")
    newest = _interpreter(tmp_path / "versions" / "3.12.10" / "bin" / "python3.12", "3.12 final")
    environ = {"PATH": str(shim.parent), "PYENV_ROOT": str(tmp_path)}
    assert versions.installed(["3.12", "3.13"], environ) == {"3.12": str(newest)}


def test_prerelease_is_not_taken_for_a_supported_version(tmp_path: Path) -> None:
    """Only final releases count."""
    shim = _interpreter(tmp_path / "bin" / "python3.14", "3.14 candidate")
    assert versions.installed(["3.14"], {"PATH": str(shim.parent), "PYENV_ROOT": str(tmp_path)}) == {}


def test_table_has_a_row_for_each_version_also_for_those_that_were_not_found() -> None:
    """A failure shows its exit code, a missing version that it was not run."""
    run = versions.Run("3.12", {"test": (0, 61.4), "demo": (2, 3.2)})
    assert not run.has_passed
    assert versions.table([run], ["test", "demo"], ["3.14"]).splitlines() == [
        "| Python | make test | make demo |",
        "|---|---|---|",
        "| 3.12 | passed, 61 s | failed (2), 3 s |",
        "| 3.14 | not installed | not installed |",
    ]


def test_classifiers_list_supported_versions_from_the_minimum_on() -> None:
    """pip's pages promise no version that `make versions` would not run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    start = "Programming Language :: Python :: 3."
    listed = [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(start)]
    assert project["requires-python"] == f">={listed[0]}"
    assert listed == [version for version in versions.SUPPORTED if version in listed]


def test_command_without_namespaces_is_an_ordinary_user_whom_the_kernel_refuses_them() -> None:
    """The kernel answers ENOSPC, as with `user.max_user_namespaces=0`, or EPERM where it refuses them to everybody."""
    command = [sys.executable, "-m", "without_namespaces", sys.executable, "-c", REFUSED]
    said = subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True, check=True).stdout
    assert said.split() in (["-1", "28", "True"], ["-1", "1", "True"])
