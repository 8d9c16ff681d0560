"""The process behind `navarch cluster up`: serves the cluster of one folder until it gets SIGTERM or SIGINT.

`cluster_folder.start_cluster` starts it. `ready` is the number of an open file descriptor; the process writes a line to it when
the cluster can be used.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from navarch._base.clock import Clock, SystemClock
from navarch._base.supervisor import Supervisor
from navarch.api import format_time
from navarch.certificates import KeyPair
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.cluster_folder import ClusterFolder, ClusterProcess, ProcessIdentity
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.credentials import ClusterAccess, ClusterAuthority
from navarch.cluster.embedded.https_front import new_loop, serve_https
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.storage import Storage, StorageError
from navarch.cluster.storage.file import FileStorage
from navarch.cluster.storage.memory import MemoryStorage
from navarch.cluster.storage.records import DamagedStorageError
from navarch.errors import ConfigError, NavarchError
from navarch.observe import logs

_log = logging.getLogger("navarch.cluster")

_COMPACTION_SECONDS: Final = 300.0
_COLLECTION: Final = (50_000, 20, 50)
_SWITCH_SECONDS: Final = 0.001
"""How long the event loop waits for a thread that computes: one imports the control plane while the server answers."""


@asynccontextmanager
async def open_storage(folder: ClusterFolder, clock: Clock, supervisor: Supervisor) -> AsyncIterator[Storage]:
    """Opens the storage of a cluster's folder, of the kind that the folder names; the cluster closes it inside the block.

    Raises `ConfigError` if the cluster has served before and its objects are missing or damaged, instead of serving an
    empty cluster.
    """
    if folder.store == "memory":
        yield MemoryStorage()
        return
    async with _open_file(folder) if folder.store == "file" else _open_etcd(folder, clock, supervisor) as storage:
        if folder.has_served() and not (await storage.page("/registry/namespaces/", limit=1)).items:
            await storage.close()
            raise _missing(folder, folder.data if folder.store == "file" else folder.etcd, "got nothing in it")
        yield storage


@asynccontextmanager
async def _open_file(folder: ClusterFolder) -> AsyncIterator[Storage]:
    if folder.has_served() and not folder.data.is_dir():
        raise _missing(folder, folder.data, "there is none")
    try:
        storage = await FileStorage.open(folder.data)
    except (DamagedStorageError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise _missing(folder, folder.data, str(error)) from error
    except OSError as error:  # a full disk, or one that may not be read
        raise ConfigError(f"opening the storage of cluster {folder.name!r} in {folder.data} failed: {error}") from error
    yield storage


@asynccontextmanager
async def _open_etcd(folder: ClusterFolder, clock: Clock, supervisor: Supervisor) -> AsyncIterator[Storage]:
    from navarch.cluster.embedded.etcd_process import EtcdProcess  # noqa: PLC0415 - most clusters have none
    from navarch.cluster.storage.etcd import EtcdStorage  # noqa: PLC0415

    data = folder.etcd / "data" / "member"
    if folder.has_served() and not data.is_dir():
        raise _missing(folder, data, "there is none")
    async with EtcdProcess(folder.etcd, clock) as etcd:
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


async def compact_periodically(cluster: EmbeddedCluster, clock: Clock) -> None:
    """Compacts every five minutes, to the revision of the compaction before, until it is cancelled.

    Watches and list pages of an older revision get 410 then.
    """
    before = await cluster.revision()
    while True:
        await clock.liveness.sleep(_COMPACTION_SECONDS)
        try:
            await cluster.compact(before)
            before = await cluster.revision()
        except StorageError as error:
            _log.warning("compaction failed: %s; retried in %.0f s", error, _COMPACTION_SECONDS)


def main(folder: str, port: str, ready: str) -> int:
    """Returns the exit code when the cluster has ended."""
    logs.setup()
    sys.setswitchinterval(_SWITCH_SECONDS)
    path = Path(folder)
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_serve(ClusterFolder(path.parent, path.name), int(port), int(ready)))
    except (NavarchError, StorageError, OSError) as error:
        _log.error("serving the cluster failed: %s", error)
        return 1
    return 0


async def _serve(folder: ClusterFolder, port: int, ready: int) -> None:
    clock, stop, loop = SystemClock(), asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    supervisor = Supervisor(clock)
    _require_images(folder)
    async with (
        open_storage(folder, clock, supervisor) as storage,
        EmbeddedCluster(
            storage,
            clock=clock,
            key=_key(folder),
            authority=_authority(folder, clock),
            audit_file=folder.audit_log,
            components=ComponentOptions(
                nodes=folder.nodes, folder=folder.machines, images=folder.images, hidden=(folder.path,), deferred=True
            ),
            supervisor=supervisor,
        ) as cluster,
        serve_https(cluster, name=f"navarch-{folder.name}", port=port) as access,
    ):
        _announce(folder, access, clock)
        with os.fdopen(ready, "w") as file:
            file.write("ready\n")
        cluster.start_components()
        tune_garbage_collector()
        compaction = supervisor.task("compaction", partial(compact_periodically, cluster, clock)).start()
        await stop.wait()
        _log.info("stopping")
        await compaction.stop()


def _require_images(folder: ClusterFolder) -> None:
    """Raises `ConfigError` for an invalid file of images; later the cluster would only lack these images."""
    if folder.images.exists():
        from navarch.cluster.nodes.images import Images  # noqa: PLC0415 - most clusters have none, and start sooner

        Images.load(folder.images)


def _announce(folder: ClusterFolder, access: ClusterAccess, clock: Clock) -> None:
    """Writes the kubeconfig and the identity of this process into the folder."""
    folder.write("kubeconfig", access.kubeconfig_file())
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    folder.write_running(ClusterProcess(identity, access.url, format_time(clock.now())))
    _log.info("serving at %s", access.url)


def tune_garbage_collector() -> None:
    """Makes garbage collections rare and exempts imported modules: stored objects are many and form no cycles."""
    gc.freeze()
    gc.set_threshold(*_COLLECTION)
    gc.enable()


def _key(folder: ClusterFolder) -> SigningKey:
    """Returns the signing key of the folder, a new one at first, so that tokens stay valid after a restart."""
    kept = folder.read("key.pem")
    if kept is not None:
        return SigningKey.from_pem(kept)
    key = SigningKey.generate()
    folder.write("key.pem", key.to_pem())
    return key


def _authority(folder: ClusterFolder, clock: SystemClock) -> ClusterAuthority:
    """Returns the authority of the folder, a new one at first, so that kubeconfigs stay valid after a restart."""
    certificate, key = folder.read("ca.pem"), folder.read("ca-key.pem")
    if certificate is not None and key is not None:
        return ClusterAuthority(KeyPair(certificate, key))
    authority = ClusterAuthority.make(clock)
    folder.write("ca-key.pem", authority.pair.key)
    folder.write("ca.pem", authority.pair.certificate)
    return authority
