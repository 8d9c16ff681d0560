"""The stores that one suite is run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from navarch.cluster.storage.file import FileOptions, FileStorage
from navarch.cluster.storage.memory import MemoryStorage
from navarch.cluster.storage.protocol import Storage

ENGINES = frozenset({"memory", "file", "file with snapshots"})


@asynccontextmanager
async def opened(engine: str, folder: Path) -> AsyncIterator[Storage]:
    """A store of that kind with nothing in it."""
    storage = await _open(engine, folder)
    try:
        yield storage
    finally:
        await storage.close()


async def _open(engine: str, folder: Path) -> Storage:
    if engine == "file":
        return await FileStorage.open(folder)
    if engine == "file with snapshots":
        return await FileStorage.open(folder, FileOptions(snapshot_after=1))
    return MemoryStorage()
