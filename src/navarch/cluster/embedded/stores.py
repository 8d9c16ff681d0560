"""Where a cluster keeps its objects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from navarch._base.clock import Clock
from navarch.cluster.embedded.state import ClusterFolder
from navarch.cluster.storage import Storage
from navarch.cluster.storage.file import FileStorage
from navarch.cluster.storage.memory import MemoryStorage

__all__ = ["opened"]


@asynccontextmanager
async def opened(folder: ClusterFolder, clock: Clock) -> AsyncIterator[Storage]:
    """The store of a cluster's folder, of the kind that the folder says; a cluster that takes it closes it before this ends."""
    if folder.store == "memory":
        yield MemoryStorage()
    elif folder.store == "file":
        yield await FileStorage.open(folder.data)
    else:
        from navarch.cluster.embedded.own_etcd import OwnEtcd  # noqa: PLC0415 - most clusters have none
        from navarch.cluster.storage.etcd import EtcdStorage  # noqa: PLC0415

        async with OwnEtcd(folder.etcd, clock) as etcd:
            storage = EtcdStorage(etcd.options, clock)
            try:
                yield storage
            finally:
                await storage.close()
