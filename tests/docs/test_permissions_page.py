"""docs/permissions.md: the project of the page ends as the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import blocks

pytest_plugins = ["pytester"]

BIN = Path(sys.executable).parent


class Shell:
    """Runs the commands of the page, with the programs of this environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        search = os.pathsep.join([str(BIN), os.environ["PATH"]])
        # Assertions of the whole package would be rewritten for each new folder.
        self._environment = {**os.environ, "PATH": search, "PYTEST_ADDOPTS": "--assert=plain -p no:cacheprovider"}

    def run(self, command: str) -> tuple[int, str]:
        """Returns the exit code and what was printed."""
        words = ["bash", "-euc", command]
        done = subprocess.run(
            words, check=False, cwd=self.folder, env=self._environment, text=True, capture_output=True, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    def succeeds(self, command: str) -> None:
        """The command has the exit code 0."""
        code, output = self.run(command)
        assert code == 0, output

    def fails(self, command: str, message: str) -> None:
        """The command fails and prints this."""
        code, output = self.run(command)
        assert code != 0, output
        for line in message.splitlines():
            assert line in output, f"expected {line!r} in:\n{output}"

    def write(self, block: str) -> None:
        """A block whose first line names its file."""
        name, _, text = block.removeprefix("# ").partition("\n")
        (self.folder / name).write_text(text)


@pytest.mark.long
def test_page_runs_from_an_empty_folder(tmp_path: Path) -> None:
    """Recorded, granted, refused, mended, enforced: each output is the one on the page."""
    scaffold, record, prove, again, enforce = blocks("permissions.md", "sh")
    before, *tests, after, _ = blocks("permissions.md", "python")
    too_much, refused = blocks("permissions.md", "text")
    (rule,) = blocks("permissions.md", "yaml")
    shell = Shell(tmp_path)
    shell.succeeds(scaffold)
    shell.folder /= "cache-operator"
    for block in (before, *tests):
        shell.write(block)
    shell.succeeds(record)
    assert rule in (shell.folder / "config/rbac/role.yaml").read_text()
    shell.fails(prove, too_much)
    shell.write(after)
    shell.succeeds(again)
    shell.succeeds(enforce)
    role = shell.folder / "config/rbac/role.yaml"
    role.write_text(role.read_text().replace(rule, ""))
    shell.fails(enforce, refused)


def test_last_example_of_the_page_works_as_it_stands(pytester: pytest.Pytester) -> None:
    """Roles of a ServiceAccount are compared with what it did."""
    pytester.makepyfile(test_page=blocks("permissions.md", "python")[-1])
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    outcome = pytester.runpytest_inprocess(
        *("--assert=plain", "--disable-plugin-autoload", "-p", "asyncio", "-p", "navarch.testing.plugin")
    )
    outcome.assert_outcomes(passed=1)
