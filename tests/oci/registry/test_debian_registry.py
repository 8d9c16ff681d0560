"""The client keeps its promises with Debian's registry, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rig import debian_registry

pytestmark = pytest.mark.real

_CONTRACT = Path(__file__).with_name("test_contract.py")
_HOSTS = Path("/etc/hosts")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    named = f"{debian_registry.NAME}:{debian_registry.PORT}"
    return subprocess.run(
        debian_registry.isolated(command),
        env={**os.environ, "NAVARCH_TEST_REGISTRY": named, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_contract_holds_with_debians_registry() -> None:
    """Every test of the contract passes at `mock.com:5000`, a name that exists in its own mount namespace alone."""
    done = _run(sys.executable, "-m", "pytest", "--numprocesses=0", "-q", "-p", "no:cacheprovider", str(_CONTRACT))
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
    assert debian_registry.NAME not in _HOSTS.read_text()


def test_registry_without_deletion_of_tags_says_what_to_do(tmp_path: Path) -> None:
    """Debian's registry deletes digests alone: the command says so."""
    program = """
import asyncio, pathlib, sys
from navarch.oci.reference import Reference
from navarch.oci.registry import push
from oci.registry.small_images import image, layout_in, plain_client

async def main():
    layout = layout_in(pathlib.Path(sys.argv[1]))
    name = Reference("mock.com:5000", "team/app", "v1")
    async with plain_client() as client:
        await push(client, layout, image(layout), name)
        await client.delete_manifest(name)

asyncio.run(main())
"""
    done = _run(sys.executable, "-c", program, str(tmp_path))
    assert "this registry may delete digests alone, with all of their tags" in done.stderr
