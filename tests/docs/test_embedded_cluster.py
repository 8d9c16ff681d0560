"""docs/embedded-cluster.md: its commands print what it says, and its test passes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.waiting import until_none
from cli.programs import Program
from docs.pages import blocks
from navarch.client import connect, load
from navarch.k8s.core.v1 import Pod
from navarch.testing import Cluster

PAGE = "embedded-cluster.md"
DIFFERENT = (
    (r"https://127\.0\.0\.1:\d+", "SERVER"),
    (r"127\.\d+\.128\.", "NETWORK."),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ.*", "SINCE"),
    (r"KUBECONFIG=\S+/navarch/", "KUBECONFIG=FOLDER/"),
    (r"(runs )\S+/python3", r"\1python3"),
    (r"web-[a-z0-9]+-[a-z0-9]{5}", "POD"),
    (r" +", " "),
    (r" $", ""),
)
"""What differs from machine to machine, and from run to run: ports, addresses, times, folders, names."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    """The command line with a folder of its own."""
    with Program(tmp_path, monkeypatch, capsys) as program:
        yield program


def told(text: str) -> list[str]:
    """The lines without what differs."""
    for pattern, replacement in DIFFERENT:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text.splitlines()


def steps() -> Iterator[tuple[str, str]]:
    """The commands of the page, and what they print."""
    for part in re.split(r"^\$ ", "".join(blocks(PAGE, "console")), flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


async def rest(program: Program) -> None:
    """Returns when the pods of the page are ready, where the page has the reader look at them."""

    async def look() -> str | None:
        async with connect(load(program.root / "default" / "kubeconfig")) as client:
            pods = await client.list(Pod, namespace="shop")
        ready = [pod.name for pod in pods if not pod.metadata.deletion_timestamp and _is_ready(pod)]
        return None if len(ready) == len(pods) == 2 else f"expected two pods that are ready, got {ready}"

    await until_none(look, seconds=60)


def _is_ready(pod: Pod) -> bool:
    return any(known.type == "Ready" and known.status == "True" for known in pod.status.conditions or [])


@pytest.mark.timeout(300)
async def test_commands_print_what_the_page_shows(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, from nothing to nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.yaml").write_text(blocks(PAGE, "yaml")[0])
    for command, shown in steps():
        if "drain" in command or "node list" in command:
            await rest(program)
        result = program.run(*shlex.split(command)[1:])
        assert result.returncode == 0, result.stderr
        assert told(result.stderr + result.stdout) == told(shown), command


@pytest.mark.cluster(nodes=1)
async def test_the_test_on_the_page_passes(cluster: Cluster) -> None:
    """With a node, which its marker asks for."""
    (shown,) = blocks(PAGE, "python")
    page: dict[str, Any] = {}
    exec(shown, page)
    (marker,) = page["test_a_pod_runs"].pytestmark
    assert marker.kwargs == {"nodes": 1}
    await page["test_a_pod_runs"](cluster)
