"""`navarch registry`: a registry from the command line, and what is in it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.programs import Program
from navarch.oci.reference import Reference
from navarch.oci.registry import push
from navarch.oci.registry_server import serve_in_thread
from oci.registry.small_images import image, layout_in, plain_client


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A registry with one image under two tags."""
    with serve_in_thread(tmp_path / "registry") as address:
        asyncio.run(_push(tmp_path / "ours", address, "v1", "v2"))
        yield address


async def _push(folder: Path, address: str, *tags: str) -> str:
    layout = layout_in(folder)
    root = image(layout)
    async with plain_client() as client:
        for tag in tags:
            await push(client, layout, root, Reference(address, "team/app", tag))
    return root.digest


def test_repositories_and_tags_are_listed(program: Program, served: str) -> None:
    """As a table for people, as JSON for programs."""
    assert program.json("registry", "ls", served, "--plain-http") == [{"repository": "team/app"}]
    assert program.json("registry", "tags", f"{served}/team/app", "--plain-http") == [{"tag": "v1"}, {"tag": "v2"}]
    assert program.run("registry", "ls", served, "--plain-http").stdout.split() == ["REPOSITORY", "team/app"]


def test_tag_is_deleted_and_then_the_image(program: Program, served: str) -> None:
    """A tag goes alone, a digest with all of its tags."""
    name = f"{served}/team/app"
    assert program.json("registry", "rm", f"{name}:v1", "--plain-http") == {"deleted": f"{name}:v1"}
    assert program.json("registry", "tags", name, "--plain-http") == [{"tag": "v2"}]
    refused = program.run("registry", "rm", name, "--plain-http")
    assert refused.returncode == 1
    assert "expected the tag or the digest of an image" in refused.stderr
    again = program.run("registry", "rm", f"{name}:v1", "--plain-http")
    assert again.returncode == 1
    assert "MANIFEST_UNKNOWN" in again.stderr


def test_registry_without_tls_needs_the_option(program: Program, served: str) -> None:
    """The error says which."""
    done = program.run("registry", "ls", served)
    assert done.returncode == 1
    assert "give --plain-http" in done.stderr


@pytest.mark.parametrize("host", ["registry", "http://localhost:5000", "local host:1", ""])
def test_host_is_checked(program: Program, host: str) -> None:
    """What is no registry is refused before anything is sent."""
    done = program.run("registry", "ls", host)
    assert done.returncode == 1
    assert "expected" in done.stderr


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    program = "import sys; sys.argv[0] = 'navarch'; from navarch.cli import main; main()"
    command = [sys.executable, "-c", program, "registry", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_served_registry_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """It prints its address, and how to push; a signal ends it with code 0, and what was pushed stays."""
    with _serving(tmp_path / "registry") as (process, address):
        asyncio.run(_push(tmp_path / "ours", address, "v1"))
        process.send_signal(number)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert f"navarch image push {address}/NAME:TAG --plain-http" in process.stderr.read()
    assert (tmp_path / "registry" / "repositories" / "team" / "app" / "_tags" / "v1").is_file()
