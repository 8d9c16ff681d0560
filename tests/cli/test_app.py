"""`navarch` starts fast, completes in shells, and explains its commands."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from cli.programs import Program
from navarch._version import __version__
from navarch.cli.app import COMMANDS, _load

HEAVY = ("aiohttp", "jinja2", "msgspec", "navarch.api", "navarch.client", "navarch.project", "rich.console", "yaml")
"""What `navarch --help` must not wait for."""


def navarch(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a process and a home of its own."""
    return subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'navarch'; from navarch.cli import main; main()", *arguments],
        env={**os.environ, "HOME": str(home), "NO_COLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_help_imports_no_command(tmp_path: Path) -> None:
    """The help of all commands needs typer alone: it is there at once."""
    program = (
        "import sys; sys.argv = ['navarch', '--help']\n"
        "from navarch.cli.app import run\n"
        "code = run()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr.strip() == "[] 0"
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    """The table of commands leads to a command of that name, whose own help begins alike."""
    command = _load(name, COMMANDS[name])
    assert command.name == name
    assert (command.help or "").split()[0] == COMMANDS[name].help.split()[0]


def test_unknown_command_is_answered_with_similar_ones(program: Program) -> None:
    """A typing mistake is no riddle."""
    done = program.run("crate")
    assert done.returncode == 2
    assert "No such command 'crate'. Did you mean 'create'" in done.stderr


def test_completion_knows_commands_and_flags(tmp_path: Path) -> None:
    """Names of commands and of their flags are completed."""
    done = navarch(home=tmp_path, _NAVARCH_COMPLETE="complete_bash", COMP_WORDS="navarch cre", COMP_CWORD="1")
    assert done.stdout.split() == ["create"]
    words = "navarch create api --ki"
    done = navarch(home=tmp_path, _NAVARCH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD="3")
    assert done.stdout.split() == ["--kind"]


@pytest.mark.parametrize(("shell", "file"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_completion_installs_itself(tmp_path: Path, shell: str, file: str) -> None:
    """`navarch --install-completion` writes what the shell reads at its start."""
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = navarch("--install-completion", shell, home=tmp_path, **named)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).exists()
    assert "navarch" in "".join(each.read_text() for each in tmp_path.rglob("*") if each.is_file())


def test_version_is_told_to_people_and_programs(program: Program) -> None:
    """With the version of Python, which a report of a fault needs, too."""
    python = platform.python_version()
    assert program.json("version") == {"navarch": __version__, "python": python}
    assert program.run("version").stdout == f"navarch {__version__}, Python {python}\n"
