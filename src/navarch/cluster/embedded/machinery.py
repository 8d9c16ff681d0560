"""`Machinery`: the control plane and the nodes of one cluster, running."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from navarch._base.backoff import Backoff
from navarch._base.supervisor import SupervisedTask, Supervisor
from navarch._base.tasks import uninterrupted
from navarch.client import Client
from navarch.cluster.controllers.plane import ControlPlane, PlaneOptions
from navarch.cluster.controllers.volumes.local import LocalVolumes
from navarch.cluster.embedded.certificates import Pair
from navarch.cluster.embedded.equipment import Equipment
from navarch.cluster.embedded.former import node_name, remove_former_nodes
from navarch.cluster.embedded.signing import signed_request
from navarch.cluster.embedded.switches import Switch, Switches
from navarch.cluster.nodes.images import Images, ImagesWatch
from navarch.cluster.nodes.kubelet import Kubelet, KubeletOptions
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.cluster.nodes.network.network import ClusterNetwork
from navarch.cluster.nodes.node_status import Profile
from navarch.cluster.nodes.shim.program.root import Root
from navarch.cluster.nodes.shim.runtime import ShimRuntime
from navarch.cluster.nodes.simulated.nodes import SimulatedNodes

__all__ = ["Machinery"]

_log = logging.getLogger("navarch.nodes")

ClientAs = Callable[..., Client]

_NODE_RESTARTS: Final = Backoff(initial=1.0, maximum=5.0)
"""A node that was killed comes back soon, as machines do."""


class Machinery:
    """What `equipment` names, while `run` runs, each as a task of the `supervisor`. `client_as` gives a client in somebody's name.

    `block` has the addresses of pods and services; there are no nodes without one. `folder` has their logs and volumes;
    `authority` is what pods know the API server by, and what signs certificates of clients.
    """

    def __init__(
        self,
        client_as: ClientAs,
        equipment: Equipment,
        block: LoopbackBlock | None,
        folder: Path,
        authority: Pair,
        *,
        supervisor: Supervisor,
    ) -> None:
        self._client_as = client_as
        self._supervisor = supervisor
        self._images = Images(path=equipment.images)
        self._plane: ControlPlane | None = None
        self._equipment = equipment
        self._folder = folder
        self._volumes = folder / "volumes"
        self._authority = authority
        self._network = self._new_network(block) if block is not None else None
        self._switches = [*self._new_switches(self._network)] if self._network is not None else []
        self.simulated = self._new_simulated() if equipment.simulated else None
        """The simulated nodes, if there are any."""

    @property
    def nodes(self) -> Mapping[str, Kubelet]:
        """The nodes by name, running or not."""
        return {switch.node.name: switch.node for switch in self._switches}

    async def run(self) -> None:
        """Works until it is cancelled; every process of every pod has ended then."""
        async with asyncio.TaskGroup() as group:
            for task in self._tasks():
                group.create_task(task.supervise(), name=task.name)

    def _tasks(self) -> Iterator[SupervisedTask]:
        task = self._supervisor.task
        if self._equipment.controllers:
            yield task("controllers", self._run_plane, check=self._plane_fault)
        if self._network is not None:
            yield task("service-proxy", self._network.run)
            yield task("node-power", Switches(self._manager(), self._switches).run)
            yield task("images", ImagesWatch(self._images, self._manager().clock).run, check=lambda: self._images.fault)
        if self.simulated is not None:
            yield task("simulated-nodes", self.simulated.run)
        for switch in self._switches:
            yield task(switch.node.name, switch.run, backoff=_NODE_RESTARTS)
        removal = partial(remove_former_nodes, self._manager(), len(self._switches))
        yield task("removed-nodes", removal, once=True)

    async def _run_plane(self) -> None:
        """A new one each time: a control plane that has failed cannot be run again."""
        self._plane = self._new_plane()
        await self._plane.run()

    def _plane_fault(self) -> str | None:
        return self._plane.fault() if self._plane is not None else None

    def _manager(self) -> Client:
        return self._client_as("system:kube-controller-manager", "system:masters")

    def _new_plane(self) -> ControlPlane:
        has_nodes = bool(self._switches) or self.simulated is not None
        volumes = LocalVolumes(path=self._volume, remove=self._remove) if has_nodes else None
        client, authority = self._manager(), self._authority
        sign = partial(signed_request, authority, client.clock)
        options = PlaneOptions(root_certificate=authority.certificate.decode(), volumes=volumes, sign=sign)
        return ControlPlane(client, options, self._supervisor)

    def _volume(self, node: str, name: str) -> str:
        return str(self._volumes / (node or "any") / name)

    async def _remove(self, path: str) -> None:
        """Removes the folder of a volume, in a thread: it may hold much. What is not ours stays, whoever says that it is."""
        try:
            place = Path(path).relative_to(self._volumes)
            with Root.at(self._volumes, create=True) as root:
                await uninterrupted(asyncio.to_thread(root.remove_all, str(place)))
        except (OSError, ValueError) as error:
            _log.warning("the folder %s of a volume is left: %s", path, error)

    def _new_network(self, block: LoopbackBlock) -> ClusterNetwork:
        client = self._client_as("system:kube-proxy", "system:masters")
        return ClusterNetwork(client, block, client.clock, client.rng)

    def _new_simulated(self) -> SimulatedNodes:
        client = self._client_as("system:node:simulated", "system:nodes", "system:masters")
        return SimulatedNodes(client, self._equipment.simulated)

    def _new_switches(self, network: ClusterNetwork) -> Iterator[Switch]:
        for number in range(1, self._equipment.nodes + 1):
            name = node_name(number)
            client = self._client_as(f"system:node:{name}", "system:nodes", "system:masters")
            yield Switch(self._new_node(client, name, network))

    def _new_node(self, client: Client, name: str, network: ClusterNetwork) -> Kubelet:
        folder = self._folder / "nodes" / name
        return Kubelet(
            client,
            name,
            ShimRuntime(folder / "shim", hidden=(self._folder, *self._equipment.hidden)),
            network,
            folder,
            images=self._images,
            options=KubeletOptions(profile=Profile(name=name, address=network.block.address())),
            supervisor=self._supervisor,
        )
