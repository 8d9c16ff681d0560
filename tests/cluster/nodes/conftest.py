"""The fixture `machine`: a process node for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster.nodes.machines import Machine, running_machine
from navarch.testing.cluster import in_process


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """A process node that has joined a fresh cluster without controllers: pods are bound to it by the tests."""
    async with in_process() as cluster, running_machine(cluster, tmp_path) as made:
        yield made
