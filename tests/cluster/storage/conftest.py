"""A store of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cluster.storage.engines import ENGINES, opened
from etcd_members import PROGRAMS, running_etcd
from navarch.cluster.storage.protocol import Storage


@pytest.fixture(params=[*ENGINES, *PROGRAMS], scope="session")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kind of store; for etcd its address."""
    if isinstance(request.param, str):
        yield request.param
        return
    with running_etcd(request.param, tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster.urls[0]


@pytest.fixture
async def storage(engine: str, tmp_path: Path) -> AsyncIterator[Storage]:
    """A store with nothing in it."""
    async with opened(engine, tmp_path) as storage:
        yield storage
