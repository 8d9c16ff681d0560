"""The process behind `navarch cluster up`: serves the cluster of one folder until it is told to stop.

`starting` runs it. `ready` is the number of a file that is already open: a line in it says that the cluster can be used.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Final

from navarch._base.clock import Clock, SystemClock
from navarch._base.supervisor import Supervisor
from navarch.api import format_time
from navarch.cluster.embedded.certificates import Authority, Pair
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.equipment import Equipment
from navarch.cluster.embedded.forgetting import forget_the_past
from navarch.cluster.embedded.kubeconfig import Access
from navarch.cluster.embedded.served import new_loop, serving
from navarch.cluster.embedded.state import ClusterFolder, Identity, Running
from navarch.cluster.embedded.stores import opened
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.storage import StorageError
from navarch.errors import NavarchError
from navarch.observe import logs

__all__ = ["collect_seldom", "main"]

_log = logging.getLogger("navarch.cluster")

_COLLECTION: Final = (50_000, 20, 50)
_SWITCH_SECONDS: Final = 0.001
"""How long the loop waits for a thread that computes. One imports all that is beside the server while it answers."""


def main(folder: str, port: str, ready: str) -> int:
    """Returns the exit code when the cluster has ended."""
    logs.setup()
    sys.setswitchinterval(_SWITCH_SECONDS)
    path = Path(folder)
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_serve(ClusterFolder(path.parent, path.name), int(port), int(ready)))
    except (NavarchError, StorageError, OSError) as error:
        _log.error("the cluster cannot run: %s", error)
        return 1
    return 0


async def _serve(folder: ClusterFolder, port: int, ready: int) -> None:
    clock, stop, loop = SystemClock(), asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    supervisor = Supervisor(clock)
    _require_images(folder)
    async with (
        opened(folder, clock, supervisor) as storage,
        EmbeddedCluster(
            storage,
            clock=clock,
            key=_key(folder),
            authority=_authority(folder, clock),
            audit_file=folder.audit_log,
            equipment=Equipment(
                nodes=folder.nodes, folder=folder.machines, images=folder.images, hidden=(folder.path,), waits=True
            ),
            supervisor=supervisor,
        ) as cluster,
        serving(cluster, name=f"navarch-{folder.name}", port=port) as access,
    ):
        _announce(folder, access, clock)
        with os.fdopen(ready, "w") as file:
            file.write("ready\n")
        cluster.equip()
        collect_seldom()
        compaction = supervisor.task("compaction", partial(forget_the_past, cluster, clock)).start()
        await stop.wait()
        _log.info("stopping")
        await compaction.stop()


def _require_images(folder: ClusterFolder) -> None:
    """Refuses a bad file now: while the cluster runs, it would only be without those images. Raises `ConfigError`."""
    if folder.images.exists():
        from navarch.cluster.nodes.images import Images  # noqa: PLC0415 - most clusters have none, and start sooner

        Images.load(folder.images)


def _announce(folder: ClusterFolder, access: Access, clock: Clock) -> None:
    """Writes down for others who serves the cluster, and where."""
    folder.write("kubeconfig", access.kubeconfig_file())
    identity = Identity.of(os.getpid())
    assert identity is not None
    folder.write_running(Running(identity, access.url, format_time(clock.now())))
    _log.info("serving at %s", access.url)


def collect_seldom() -> None:
    """What is stored makes no cycles, and there is much of it: it is looked through seldom, what was imported never."""
    gc.freeze()
    gc.set_threshold(*_COLLECTION)
    gc.enable()


def _key(folder: ClusterFolder) -> SigningKey:
    """The same in every run, so that tokens stay good."""
    kept = folder.read("key.pem")
    if kept is not None:
        return SigningKey.from_pem(kept)
    key = SigningKey.generate()
    folder.write("key.pem", key.to_pem())
    return key


def _authority(folder: ClusterFolder, clock: SystemClock) -> Authority:
    """The same in every run, so that kubeconfigs stay good."""
    certificate, key = folder.read("ca.pem"), folder.read("ca-key.pem")
    if certificate is not None and key is not None:
        return Authority(Pair(certificate, key))
    authority = Authority.make(clock)
    folder.write("ca-key.pem", authority.pair.key)
    folder.write("ca.pem", authority.pair.certificate)
    return authority
