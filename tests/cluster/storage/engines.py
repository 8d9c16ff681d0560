"""The stores that one suite is run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from navarch.cluster.storage.etcd import EtcdStorage
from navarch.cluster.storage.file import FileOptions, FileStorage
from navarch.cluster.storage.memory import MemoryStorage
from navarch.cluster.storage.protocol import Storage
from navarch.etcd import EtcdClient, EtcdOptions

ENGINES = ("memory", "file", "file with snapshots")


@asynccontextmanager
async def opened(engine: str, folder: Path) -> AsyncIterator[Storage]:
    """A store with nothing in it: one of `ENGINES`, or in the etcd at that address, whose keys are deleted first."""
    storage = await _open(engine, folder)
    try:
        yield storage
    finally:
        await storage.close()


async def _open(engine: str, folder: Path) -> Storage:
    if engine == "memory":
        return MemoryStorage()
    if engine == "file":
        return await FileStorage.open(folder)
    if engine == "file with snapshots":
        return await FileStorage.open(folder, FileOptions(snapshot_after=1))
    options = EtcdOptions(endpoints=(engine,))
    async with EtcdClient(options) as client:
        await client.kv.delete(b"\0", range_end=b"\0")
    return EtcdStorage(options)
