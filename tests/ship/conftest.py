"""What tests of shipping share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rig

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of navarch, as an index would have it."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", str(_ROOT)]
    subprocess.run(command, check=True, timeout=300)
    return folder


@pytest.fixture
def node_cluster() -> Iterator[rig.Cluster]:
    """A real Kubernetes with one node and a registry, which nobody else uses: its objects are counted."""
    with rig.running(node=True, registry=True) as cluster:
        yield cluster
