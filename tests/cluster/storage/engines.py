"""The stores that one suite is run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from navarch.cluster.storage.history import HistoryLimits
from navarch.cluster.storage.memory import MemoryStorage
from navarch.cluster.storage.protocol import Storage

ENGINES = frozenset({"memory"})


@asynccontextmanager
async def opened(engine: str, folder: Path) -> AsyncIterator[Storage]:
    """A store of that kind with nothing in it."""
    assert engine in ENGINES
    storage = MemoryStorage(HistoryLimits())
    try:
        yield storage
    finally:
        await storage.close()
