"""docs/models.md: its CRD, its command, the module that comes of it, and its code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.pages import blocks, module_from
from navarch.cli.app import run
from navarch.testing import Cluster

PAGE = "models.md"
MODULE = "models/vault_example_com/v1.py"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the reader, with the CRD of the page."""
    (tmp_path / "backups.yaml").write_text(blocks(PAGE, "yaml")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "models"]:
        del sys.modules[name]


def typed(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command of the page prints, with the number of files last."""
    monkeypatch.setattr(sys, "argv", command.split())
    assert run() == 0
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_the_command_writes_the_module(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is printed, and below its imports as it is shown."""
    command, _, answer = blocks(PAGE, "console")[0].removeprefix("$ ").partition("\n")
    assert typed(command, monkeypatch, capsys) == answer
    assert (folder / MODULE).read_text().endswith(f"\n\n\n{blocks(PAGE, 'python')[0]}")


async def test_the_code_runs(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From top to bottom, and its test passes."""
    typed("navarch generate models backups.yaml", monkeypatch, capsys)
    file = folder / "page_models.py"
    file.write_text("\n".join(blocks(PAGE, "python")[1:]))
    page = module_from(file)
    await page.test_backup_gets_the_default_of_its_crd(cluster)


def test_every_option_of_the_page_exists(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of the second block use no other."""
    told = typed("navarch generate models --help", monkeypatch, capsys)
    for option in ("--from-cluster", "--openapi", "--kubeconfig", "--context", "--out", "--check", "--output"):
        assert option in told
