"""Where a cluster keeps its objects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from navarch._base.clock import Clock
from navarch._base.supervisor import Supervisor
from navarch.cluster.embedded.state import ClusterFolder
from navarch.cluster.storage import Storage
from navarch.cluster.storage.file import FileStorage
from navarch.cluster.storage.framing import DamagedError
from navarch.cluster.storage.memory import MemoryStorage
from navarch.errors import ConfigError

__all__ = ["opened"]


@asynccontextmanager
async def opened(folder: ClusterFolder, clock: Clock, supervisor: Supervisor) -> AsyncIterator[Storage]:
    """The store of a cluster's folder, of the kind that the folder says; a cluster that takes it closes it before this ends.

    Raises `ConfigError` if the cluster has served before and its objects are gone or damaged: an empty one in its place
    would look as if all was well.
    """
    if folder.store == "memory":
        yield MemoryStorage()
        return
    async with _opened_file(folder) if folder.store == "file" else _opened_etcd(folder, clock, supervisor) as storage:
        if folder.has_served() and not (await storage.page("/registry/namespaces/", limit=1)).items:
            await storage.close()
            raise _missing(folder, folder.data if folder.store == "file" else folder.etcd, "got nothing in it")
        yield storage


@asynccontextmanager
async def _opened_file(folder: ClusterFolder) -> AsyncIterator[Storage]:
    if folder.has_served() and not folder.data.is_dir():
        raise _missing(folder, folder.data, "there is none")
    try:
        storage = await FileStorage.open(folder.data)
    except (DamagedError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise _missing(folder, folder.data, str(error)) from error
    except OSError as error:  # a full disk, or one that may not be read
        raise ConfigError(
            f"the objects of cluster {folder.name!r} in {folder.data} cannot be opened: {error}"
        ) from error
    yield storage


@asynccontextmanager
async def _opened_etcd(folder: ClusterFolder, clock: Clock, supervisor: Supervisor) -> AsyncIterator[Storage]:
    from navarch.cluster.embedded.own_etcd import OwnEtcd  # noqa: PLC0415 - most clusters have none
    from navarch.cluster.storage.etcd import EtcdStorage  # noqa: PLC0415

    data = folder.etcd / "data" / "member"
    if folder.has_served() and not data.is_dir():
        raise _missing(folder, data, "there is none")
    async with OwnEtcd(folder.etcd, clock) as etcd:
        watched = supervisor.task("etcd-process", etcd.run).start()
        storage = EtcdStorage(etcd.options, clock)
        try:
            yield storage
        finally:
            await storage.close()
            await watched.stop()


def _missing(folder: ClusterFolder, data: Path, got: str) -> ConfigError:
    return ConfigError(
        f"expected the objects of cluster {folder.name!r} in {data}, but {got}; put them back from a copy, or remove the "
        f"cluster with `navarch cluster down --delete --name {folder.name}`"
    )
