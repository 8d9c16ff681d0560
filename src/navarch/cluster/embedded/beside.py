"""What goes on beside the server: begun and ended with it."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import zlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from navarch._base.supervisor import SupervisedTask, Supervisor
from navarch._base.tasks import uninterrupted
from navarch.cluster.embedded.bootstrap import SERVICES
from navarch.cluster.embedded.certificates import Authority
from navarch.cluster.embedded.equipment import Equipment
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.cluster.nodes.shim.program.root import Root
from navarch.cluster.storage import Storage
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.client import Client
    from navarch.cluster.embedded.machinery import Machinery
    from navarch.cluster.nodes.kubelet import Kubelet
    from navarch.cluster.nodes.simulated.nodes import SimulatedNodes

__all__ = ["Beside"]

_log = logging.getLogger("navarch.cluster")

_OWN_SERVICE: Final = "/registry/services/specs/default/kubernetes"
_OUTSIDE: Final = "10."
_FIRST_OF_LASTING: Final = 64
_FIRST_OF_PASSING: Final = 160
"""Clusters that leave nothing behind take their addresses from here on, so that others find theirs again."""
_MACHINERY: Final = "navarch.cluster.embedded.machinery"


class _Cluster(Protocol):
    @property
    def authority(self) -> Authority: ...

    @property
    def supervisor(self) -> Supervisor: ...

    def part_as(self, name: str, *groups: str) -> Client: ...


class Beside:
    """The machinery of a cluster, and what it needs of this machine: addresses and a folder.

    `prepare` before the store is filled, `start` when the server answers, `stop` before it ends.
    """

    def __init__(self, cluster: _Cluster, equipment: Equipment) -> None:
        self._cluster = cluster
        self._equipment = equipment
        self._block: LoopbackBlock | None = None
        self._temporary: Path | None = None
        self._machinery: Machinery | None = None
        self._task: SupervisedTask | None = None

    @property
    def nodes(self) -> Mapping[str, Kubelet]:
        """The nodes by name."""
        return self._machinery.nodes if self._machinery is not None else {}

    @property
    def simulated(self) -> SimulatedNodes | None:
        """The simulated nodes, if there are any."""
        return self._machinery.simulated if self._machinery is not None else None

    async def prepare(self, storage: Storage) -> str:
        """Takes addresses; returns the range of those that services get: a store that is not empty has settled it."""
        if not self._equipment.nodes:
            return SERVICES
        stored = await storage.get(_OWN_SERVICE)
        self._block = self._new_block() if stored is None else _taken(_own_address(stored.value))
        return str(self._block.services)

    def _new_block(self) -> LoopbackBlock:
        """A cluster with a folder has one by that, so that another one does not have it while this one is down."""
        if self._equipment.folder is None:
            return LoopbackBlock.take(_FIRST_OF_PASSING)
        own = zlib.crc32(bytes(self._equipment.folder.absolute()))
        return LoopbackBlock.take(_FIRST_OF_LASTING + own % (_FIRST_OF_PASSING - _FIRST_OF_LASTING))

    def start(self) -> None:
        """Begins to work, in the background."""
        self._task = self._cluster.supervisor.task("components", self._run).start()

    async def _run(self) -> None:
        """Much is imported here, in a thread: the server answers meanwhile."""
        await asyncio.to_thread(import_module, _MACHINERY)
        from navarch.cluster.embedded.machinery import Machinery  # noqa: PLC0415 - see above

        folder = self._equipment.folder or self._temporary
        if folder is None:
            folder = self._temporary = Path(tempfile.mkdtemp(prefix="navarch-"))
        cluster, authority = self._cluster, self._cluster.authority.pair
        self._machinery = Machinery(
            cluster.part_as, self._equipment, self._block, folder, authority, supervisor=cluster.supervisor
        )
        await self._machinery.run()

    async def stop(self) -> None:
        """Everything has ended; of files, only those in the folder of the equipment are left."""
        if self._task is not None:
            await self._task.stop()
        if self._block is not None:
            self._block.close()
        if self._temporary is not None:
            await self._remove_files(self._temporary)

    async def _remove_files(self, folder: Path) -> None:
        """In a thread: containers may have left much, and deeper than anybody can descend."""
        try:
            with Root.at(folder.parent) as above:
                await uninterrupted(asyncio.to_thread(above.remove_all, folder.name))
        except OSError as error:
            _log.warning("files of the cluster are left in %s: %s", folder, error)


def _own_address(service: bytes) -> str:
    return str(msgspec.json.decode(service)["spec"]["clusterIP"])


def _taken(address: str) -> LoopbackBlock:
    """The block in which the services of a stored cluster have their addresses; this one is of its first service."""
    if address.startswith(_OUTSIDE):
        raise ConfigError(
            f"the cluster was made without nodes: its services have addresses like {address}, which are not of this "
            f"machine; make a new one with nodes"
        )
    number = int(address.split(".")[1])
    block = LoopbackBlock.take(number)
    if block.number != number:
        block.close()
        raise ConfigError(f"the addresses 127.{number}.x.y of this cluster are taken by another one; stop that first")
    return block
