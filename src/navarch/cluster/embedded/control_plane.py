"""`ControlPlane`: the controllers, the scheduler, the service proxy and the nodes of one cluster.

A node can be switched off by an annotation (`NodePowerController`). Node objects beyond the configured number are deleted at
the start (`delete_removed_nodes`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from navarch._base.backoff import Backoff
from navarch._base.supervisor import SupervisedTask, Supervisor
from navarch._base.tasks import uninterrupted, unless
from navarch.cache import Cache, Cached, Change
from navarch.certificates import KeyPair
from navarch.client import Client
from navarch.cluster.controllers.manager import ControllerManager, ControllerManagerOptions
from navarch.cluster.controllers.volumes.local_volumes import LocalVolumes
from navarch.cluster.embedded.components import POWER, POWER_OFF, ComponentOptions, unpacked_images
from navarch.cluster.embedded.credentials import sign_request
from navarch.cluster.nodes.images import Images
from navarch.cluster.nodes.images.loader import ImagesWatch
from navarch.cluster.nodes.kubelet import Kubelet, KubeletOptions
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.cluster.nodes.network.network import ClusterNetwork
from navarch.cluster.nodes.node_status import RUNTIME, Profile
from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory
from navarch.cluster.nodes.shim.runtime import ShimRuntime
from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
from navarch.errors import ContainerError, NotFound
from navarch.k8s.core.v1 import Node


class PoweredNode:
    """A node that runs while it is switched on; it is off at first."""

    def __init__(self, node: Kubelet) -> None:
        self.node = node
        self._on, self._off = asyncio.Event(), asyncio.Event()
        self._off.set()

    def turn(self, *, on: bool) -> None:
        """Switches the node on or off."""
        wanted, other = (self._on, self._off) if on else (self._off, self._on)
        wanted.set()
        other.clear()

    async def run(self) -> None:
        """Runs the node whenever it is on, until cancelled. Raises when the node failed; `run` may be called again."""
        while True:
            await self._on.wait()
            await unless(self._off.wait(), self._run_node())

    async def _run_node(self) -> None:
        await self.node.run()
        raise ContainerError("the process that runs this node's containers has died")


class NodePowerController:
    """Switches nodes off and on as the annotation `POWER` of their Node objects says; a node without it is on."""

    def __init__(self, client: Client, nodes: Sequence[PoweredNode]) -> None:
        self._nodes = {node.node.name: node for node in nodes}
        self._cache = Cache(client, client.clock, client.rng)
        self._objects = self._cache.collection(Cached(Node, metadata_only=True))

    async def run(self) -> None:
        """Watches the Node objects until it is cancelled."""
        self._objects.subscribe(self._changed)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._cache.run(), name="cache of nodes")
                await self._cache.wait_synced()
                self._turn_on_unregistered()
        finally:
            self._objects.unsubscribe(self._changed)

    def _turn_on_unregistered(self) -> None:
        known = {entry.key.name for entry in self._objects.entries()}
        for name in self._nodes.keys() - known:
            self._nodes[name].turn(on=True)

    def _changed(self, change: Change) -> None:
        entry = change.new
        node = self._nodes.get(entry.key.name) if entry is not None else None
        if entry is not None and node is not None:
            found = self._objects.view(entry)
            node.turn(on=(found.metadata.annotations or {}).get(POWER) != POWER_OFF)


_NAME: Final = re.compile(r"node-([1-9]\d*)")

_log = logging.getLogger("navarch.cluster")


def node_name(number: int) -> str:
    """Returns the name of a process node; the first number is 1."""
    return f"node-{number}"


async def delete_removed_nodes(client: Client, count: int) -> None:
    """Deletes the Node objects of process nodes beyond the first `count`, which this cluster no longer starts.

    Their pods are rescheduled, as with any node that is deleted. Their volumes stay, for a later start with more nodes.
    """
    for node in await client.list(Node):
        if _is_removed(node, count):
            _log.info("deleting node %s: the cluster has %d nodes now", node.name, count)
            with suppress(NotFound):
                await client.delete(Node, node.name)


def _is_removed(node: Node, count: int) -> bool:
    """Compares the runtime, too: users may have created Node objects of the same name."""
    found, info = _NAME.fullmatch(node.name), node.status.node_info
    return (
        found is not None and int(found[1]) > count and info is not None and info.container_runtime_version == RUNTIME
    )


ClientAs = Callable[..., Client]

_NODE_RESTARTS: Final = Backoff(initial=1.0, maximum=5.0)
"""A node that was killed restarts soon, as a machine does."""


class ControlPlane:
    """Runs the components that `components` names, each as a task of the `supervisor`.

    `client_as` returns a client for a user. Pods and services get addresses of `block`; without one there are no nodes.
    `folder` holds logs and volumes of nodes. Pods trust the API server by the certificate of `authority`, which also signs
    certificates of clients.
    """

    def __init__(
        self,
        client_as: ClientAs,
        components: ComponentOptions,
        block: LoopbackBlock | None,
        folder: Path,
        authority: KeyPair,
        *,
        images: Images,
        supervisor: Supervisor,
    ) -> None:
        self._client_as = client_as
        self._supervisor = supervisor
        self._images = images
        self._manager: ControllerManager | None = None
        self._components = components
        self._folder = folder
        self._volumes = folder / "volumes"
        self._authority = authority
        self._network = self._new_network(block) if block is not None else None
        self._powered_nodes = [*self._new_powered_nodes(self._network)] if self._network is not None else []
        self.simulated = self._new_simulated() if components.simulated else None
        """The simulated nodes, if there are any."""

    @property
    def nodes(self) -> Mapping[str, Kubelet]:
        """The nodes by name, running or not."""
        return {powered.node.name: powered.node for powered in self._powered_nodes}

    async def run(self) -> None:
        """Runs until it is cancelled; every process of every pod has ended when it returns."""
        async with asyncio.TaskGroup() as group:
            for task in self._tasks():
                group.create_task(task.supervise(), name=task.name)

    def _tasks(self) -> Iterator[SupervisedTask]:
        task = self._supervisor.task
        if self._components.controllers:
            yield task("controllers", self._run_controllers, check=self._controllers_fault)
        if self._network is not None:
            yield task("service-proxy", self._network.run)
            yield task("node-power", NodePowerController(self._manager_client(), self._powered_nodes).run)
            watch = ImagesWatch(self._images, unpacked_images(self._folder), self._manager_client().clock)
            yield task("images", watch.run, check=lambda: self._images.fault)
        if self.simulated is not None:
            yield task("simulated-nodes", self.simulated.run)
        for powered in self._powered_nodes:
            yield task(powered.node.name, powered.run, backoff=_NODE_RESTARTS)
        removal = partial(delete_removed_nodes, self._manager_client(), len(self._powered_nodes))
        yield task("removed-nodes", removal, once=True)

    async def _run_controllers(self) -> None:
        """Makes a new manager for each run: one that failed cannot be run again."""
        self._manager = self._new_manager()
        await self._manager.run()

    def _controllers_fault(self) -> str | None:
        return self._manager.fault() if self._manager is not None else None

    def _manager_client(self) -> Client:
        return self._client_as("system:kube-controller-manager", "system:masters")

    def _new_manager(self) -> ControllerManager:
        has_nodes = bool(self._powered_nodes) or self.simulated is not None
        volumes = LocalVolumes(path=self._volume, remove=self._remove) if has_nodes else None
        client, authority = self._manager_client(), self._authority
        sign = partial(sign_request, authority, client.clock)
        options = ControllerManagerOptions(root_certificate=authority.certificate.decode(), volumes=volumes, sign=sign)
        return ControllerManager(client, options, self._supervisor)

    def _volume(self, node: str, name: str) -> str:
        return str(self._volumes / (node or "any") / name)

    async def _remove(self, path: str) -> None:
        """Removes the folder of a volume in a thread; refuses a path outside the volumes of this cluster."""
        try:
            place = Path(path).relative_to(self._volumes)
            with ConfinedDirectory.at(self._volumes, create=True) as root:
                await uninterrupted(asyncio.to_thread(root.remove_all, str(place)))
        except (OSError, ValueError) as error:
            _log.warning("removing the volume folder %s failed: %s; remove it by hand", path, error)

    def _new_network(self, block: LoopbackBlock) -> ClusterNetwork:
        client = self._client_as("system:kube-proxy", "system:masters")
        return ClusterNetwork(client, block, client.clock, client.rng)

    def _new_simulated(self) -> SimulatedNodes:
        client = self._client_as("system:node:simulated", "system:nodes", "system:masters")
        return SimulatedNodes(client, self._components.simulated)

    def _new_powered_nodes(self, network: ClusterNetwork) -> Iterator[PoweredNode]:
        for number in range(1, self._components.nodes + 1):
            name = node_name(number)
            client = self._client_as(f"system:node:{name}", "system:nodes", "system:masters")
            yield PoweredNode(self._new_node(client, name, network))

    def _new_node(self, client: Client, name: str, network: ClusterNetwork) -> Kubelet:
        folder = self._folder / "nodes" / name
        return Kubelet(
            client,
            name,
            ShimRuntime(folder / "shim", hidden=(self._folder, *self._components.hidden)),
            network,
            folder,
            images=self._images,
            options=KubeletOptions(profile=Profile(name=name, address=network.block.address())),
            supervisor=self._supervisor,
        )
