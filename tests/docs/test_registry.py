"""docs/registry.md: its commands and its code."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from docs.pages import blocks, module_of
from navarch.cli.app import run
from navarch.oci.reference import Reference
from navarch.oci.registry import push
from navarch.oci.registry_server import serve_in_thread
from oci.registry.small_images import AMD64, index, layout_in, plain_client

PAGE = "registry.md"


async def _push(folder: Path, address: str) -> str:
    layout = layout_in(folder)
    root = index(layout)
    async with plain_client() as client:
        await push(client, layout, root, Reference(address, "team/app", "v1"))
    return layout.image(root, AMD64)[0].digest


def test_commands_of_the_page_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listing and deleting, as they are typed."""
    with serve_in_thread(tmp_path / "images") as address:
        asyncio.run(_push(tmp_path / "ours", address))
        for line in blocks(PAGE, "console")[1].splitlines():
            command = line.removeprefix("$ ").replace("localhost:5000", address)
            monkeypatch.setattr(sys, "argv", command.split())
            assert run() == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["REPOSITORY", "team/app", "TAG", "v1"]
    assert f"{address}/team/app:v1 is deleted" in printed.err


def test_code_of_the_page_runs(tmp_path: Path) -> None:
    """An image is copied within a registry; a registry lives in a block."""
    page = module_of(PAGE, tmp_path)
    with serve_in_thread(tmp_path / "images") as address:
        digest = asyncio.run(_push(tmp_path / "ours", address))
        copied = asyncio.run(page.copy(f"{address}/team/app:v1", f"{address}/team/copy:v1", tmp_path / "layout"))
    assert copied == f"{address}/team/copy@{digest}"
    assert asyncio.run(page.with_a_registry(tmp_path / "images")) == ["team/app", "team/copy"]
