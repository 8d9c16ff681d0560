"""docs/manifests.md: its commands print what it says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from docs.pages import blocks
from navarch.testing import Cluster
from project.small_project import forgotten_code, write_project

PAGE = "manifests.md"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    with forgotten_code(), Program(tmp_path, monkeypatch, capsys) as program:
        yield program


def steps(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, and what they print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def pattern(shown: str) -> str:
    """What is shown, as a pattern: a line of `…` stands for any lines."""
    lines = ("(?:.*\n)*" if line == "…" else re.escape(line) + "\n" for line in shown.splitlines())
    return "".join(lines)


async def test_commands_print_what_the_page_shows(
    program: Program, http_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a project of one kind, on a cluster of its own."""
    root = tmp_path / "project"
    write_project(root)
    kubeconfig = tmp_path / "kubeconfig"
    assert http_cluster.access is not None
    kubeconfig.write_bytes(http_cluster.access.kubeconfig_file())
    monkeypatch.chdir(root)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    found = iter(blocks(PAGE, "console"))
    run(program, next(found), root)
    for patch in blocks(PAGE, "yaml"):
        file = root / patch.partition("\n")[0].removeprefix("# ")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(patch)
    for block in found:
        run(program, block, root)


def run(program: Program, block: str, root: Path) -> None:
    """Types each command, and compares what it prints."""
    for command, shown in steps(block):
        name, *arguments = command.split()
        if name == "navarch":
            result = program.run(*arguments)
            said = result.stdout + result.stderr
        else:
            said = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, check=True).stdout
        said = "\n".join(line.rstrip() for line in said.splitlines()) + ("\n" if said else "")
        assert re.fullmatch(pattern(shown), said), f"{command} printed:\n{said}"
