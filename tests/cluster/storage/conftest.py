"""A store of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster.storage.engines import ENGINES, opened
from navarch.cluster.storage.protocol import Storage


@pytest.fixture(params=sorted(ENGINES), scope="session")
def engine(request: pytest.FixtureRequest) -> str:
    """The kind of store."""
    return str(request.param)


@pytest.fixture
async def storage(engine: str, tmp_path: Path) -> AsyncIterator[Storage]:
    """A store with nothing in it."""
    async with opened(engine, tmp_path) as storage:
        yield storage
