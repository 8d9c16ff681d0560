"""`BackgroundTasks`: starts and stops the control plane of a cluster, with the addresses and the folder that it needs."""

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

from navarch._base.clock import Clock
from navarch._base.supervisor import SupervisedTask, Supervisor
from navarch._base.tasks import uninterrupted
from navarch.cluster.embedded.bootstrap import SERVICES
from navarch.cluster.embedded.components import ComponentOptions, unpacked_images
from navarch.cluster.embedded.credentials import ClusterAuthority
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory
from navarch.cluster.storage import Storage
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.client import Client
    from navarch.cluster.embedded.control_plane import ControlPlane
    from navarch.cluster.nodes.images import Images
    from navarch.cluster.nodes.kubelet import Kubelet
    from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
    from navarch.oci.documents import Descriptor
    from navarch.oci.layout import Layout


_log = logging.getLogger("navarch.cluster")

_API_SERVER_SERVICE: Final = "/registry/services/specs/default/kubernetes"
_NOT_LOOPBACK: Final = "10."
_FIRST_PERSISTENT: Final = 64
_FIRST_TEMPORARY: Final = 160
"""Clusters without a folder take address blocks from here on, so that those with a folder find theirs free."""
_BLOCK_ATTEMPTS: Final = 20
_CONTROL_PLANE: Final = "navarch.cluster.embedded.control_plane"


class _ComponentHost(Protocol):
    clock: Clock

    @property
    def authority(self) -> ClusterAuthority: ...

    @property
    def supervisor(self) -> Supervisor: ...

    def component_client(self, name: str, *groups: str) -> Client: ...


class BackgroundTasks:
    """The control plane of a cluster as a supervised task, with an address block and a folder of this machine.

    Call `prepare` before the storage is bootstrapped, `start` when the server answers, `stop` before the server ends.
    """

    def __init__(self, cluster: _ComponentHost, components: ComponentOptions) -> None:
        self._cluster = cluster
        self._components = components
        self._block: LoopbackBlock | None = None
        self._temporary: Path | None = None
        self._control_plane: ControlPlane | None = None
        self._task: SupervisedTask | None = None
        self._images: Images | None = None

    @property
    def nodes(self) -> Mapping[str, Kubelet]:
        """The nodes by name."""
        return self._control_plane.nodes if self._control_plane is not None else {}

    @property
    def simulated(self) -> SimulatedNodes | None:
        """The simulated nodes, if there are any."""
        return self._control_plane.simulated if self._control_plane is not None else None

    async def prepare(self, storage: Storage) -> str:
        """Reserves an address block; returns the range of service addresses. A storage with objects keeps its range."""
        if not self._components.nodes:
            return SERVICES
        stored = await storage.get(_API_SERVER_SERVICE)
        if stored is None:
            self._block = self._new_block()
        else:
            self._block = await _stored_block(_api_server_address(stored.value), self._cluster.clock.liveness)
        return str(self._block.services)

    def _new_block(self) -> LoopbackBlock:
        """Derives the block from the folder, so that other clusters do not take it while this one is down."""
        if self._components.folder is None:
            return LoopbackBlock.take(_FIRST_TEMPORARY)
        own = zlib.crc32(bytes(self._components.folder.absolute()))
        return LoopbackBlock.take(_FIRST_PERSISTENT + own % (_FIRST_TEMPORARY - _FIRST_PERSISTENT))

    def start(self) -> None:
        """Starts the control plane in the background."""
        self._task = self._cluster.supervisor.task("components", self._run).start()

    async def _run(self) -> None:
        """Imports the control plane in a thread, so that the server answers meanwhile."""
        await asyncio.to_thread(import_module, _CONTROL_PLANE)
        from navarch.cluster.embedded.control_plane import ControlPlane  # noqa: PLC0415 - see above

        cluster, authority = self._cluster, self._cluster.authority.pair
        self._control_plane = ControlPlane(
            cluster.component_client,
            self._components,
            self._block,
            self._folder(),
            authority,
            images=self._known_images(),
            supervisor=cluster.supervisor,
        )
        await self._control_plane.run()

    def _folder(self) -> Path:
        if self._components.folder is None and self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="navarch-"))
        folder = self._components.folder or self._temporary
        assert folder is not None
        return folder

    def _known_images(self) -> Images:
        from navarch.cluster.nodes.images import Images  # noqa: PLC0415 - a server without nodes needs none

        if self._images is None:
            self._images = Images(path=self._components.images)
        return self._images

    async def load_image(self, layout: Layout, descriptor: Descriptor, name: str) -> str:
        """See `EmbeddedCluster.load_image`."""
        from navarch.cluster.nodes.images.loader import load_image  # noqa: PLC0415 - as above

        folder = unpacked_images(self._folder())
        loading = asyncio.to_thread(load_image, self._known_images(), folder, layout, descriptor, name)
        return (await uninterrupted(loading)).image_id

    async def stop(self) -> None:
        """Stops the control plane; removes the temporary folder, if there is one."""
        if self._task is not None:
            await self._task.stop()
        if self._block is not None:
            self._block.close()
        if self._temporary is not None:
            await self._remove_files(self._temporary)

    async def _remove_files(self, folder: Path) -> None:
        """Removes the folder in a thread: containers may have left many files, in paths longer than the kernel takes."""
        try:
            with ConfinedDirectory.at(folder.parent) as above:
                await uninterrupted(asyncio.to_thread(above.remove_all, folder.name))
        except OSError as error:
            _log.warning("removing the temporary folder %s failed: %s; remove it by hand", folder, error)


def _api_server_address(service: bytes) -> str:
    return str(msgspec.json.decode(service)["spec"]["clusterIP"])


async def _stored_block(address: str, clock: Clock) -> LoopbackBlock:
    """Reserves the block that holds the address of the API server's service.

    Another cluster may have taken the block while this one was down, and may be about to end: waits for some seconds, then
    raises `ConfigError`.
    """
    if address.startswith(_NOT_LOOPBACK):
        raise ConfigError(
            f"expected services with loopback addresses, got {address}: the cluster was created without nodes; create a new "
            f"cluster with nodes"
        )
    number = int(address.split(".")[1])
    for _ in range(_BLOCK_ATTEMPTS):
        block = LoopbackBlock.take(number)
        if block.number == number:
            return block
        block.close()
        await clock.sleep(1.0)
    raise ConfigError(f"another cluster uses the addresses 127.{number}.x.y of this one; stop it first")
