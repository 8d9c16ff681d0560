"""`Machinery`: the control plane and the nodes of one cluster, running."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from navarch.client import Client
from navarch.cluster.controllers.plane import ControlPlane, PlaneOptions
from navarch.cluster.controllers.volumes.local import LocalVolumes
from navarch.cluster.embedded.certificates import Pair
from navarch.cluster.embedded.equipment import Equipment
from navarch.cluster.embedded.former import node_name, remove_former_nodes
from navarch.cluster.embedded.signing import signed_request
from navarch.cluster.embedded.switches import Switch, Switches
from navarch.cluster.nodes.images import Images
from navarch.cluster.nodes.network.addresses import Block
from navarch.cluster.nodes.network.network import Network
from navarch.cluster.nodes.node import Node, NodeOptions
from navarch.cluster.nodes.registration import Profile
from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
from navarch.cluster.nodes.warden.warden import Warden

__all__ = ["Machinery"]

ClientAs = Callable[..., Client]


class Machinery:
    """What `equipment` names, while `run` runs. `client_as` gives a client in somebody's name.

    `block` has the addresses of pods and services; there are no nodes without one. `folder` has their logs and volumes;
    `authority` is what pods know the API server by, and what signs certificates of clients.
    """

    def __init__(
        self, client_as: ClientAs, equipment: Equipment, block: Block | None, folder: Path, authority: Pair
    ) -> None:
        self._client_as = client_as
        self._equipment = equipment
        self._folder = folder
        self._authority = authority
        self._network = self._new_network(block) if block is not None else None
        self._switches = [*self._new_switches(self._network)] if self._network is not None else []
        self.simulated = self._new_simulated() if equipment.simulated else None
        """The simulated nodes, if there are any."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by name, running or not."""
        return {switch.node.name: switch.node for switch in self._switches}

    async def run(self) -> None:
        """Works until it is cancelled; every process of every pod has ended then."""
        async with asyncio.TaskGroup() as group:
            if self._equipment.controllers:
                group.create_task(self._plane().run(), name="control plane")
            if self._network is not None:
                group.create_task(self._network.run(), name="network")
                group.create_task(Switches(self._manager(), self._switches).run(), name="switches")
            if self.simulated is not None:
                group.create_task(self.simulated.run(), name="simulated nodes")
            for switch in self._switches:
                group.create_task(switch.run(), name=switch.node.name)
            group.create_task(remove_former_nodes(self._manager(), len(self._switches)), name="former nodes")

    def _manager(self) -> Client:
        return self._client_as("system:kube-controller-manager", "system:masters")

    def _plane(self) -> ControlPlane:
        has_nodes = bool(self._switches) or self.simulated is not None
        volumes = LocalVolumes(path=self._volume, remove=_remove) if has_nodes else None
        client, authority = self._manager(), self._authority
        sign = partial(signed_request, authority, client.clock)
        options = PlaneOptions(root_certificate=authority.certificate.decode(), volumes=volumes, sign=sign)
        return ControlPlane(client, options)

    def _volume(self, node: str, name: str) -> str:
        return str(self._folder / "volumes" / (node or "any") / name)

    def _new_network(self, block: Block) -> Network:
        client = self._client_as("system:kube-proxy", "system:masters")
        return Network(client, block, client.clock, client.rng)

    def _new_simulated(self) -> SimulatedNodes:
        client = self._client_as("system:node:simulated", "system:nodes", "system:masters")
        return SimulatedNodes(client, self._equipment.simulated)

    def _new_switches(self, network: Network) -> Iterator[Switch]:
        for number in range(1, self._equipment.nodes + 1):
            name = node_name(number)
            client = self._client_as(f"system:node:{name}", "system:nodes", "system:masters")
            yield Switch(self._new_node(client, name, network), client.clock)

    def _new_node(self, client: Client, name: str, network: Network) -> Node:
        folder = self._folder / "nodes" / name
        return Node(
            client,
            name,
            Warden(folder / "warden"),
            network,
            folder,
            images=Images.load(self._equipment.images) if self._equipment.images else Images(),
            options=NodeOptions(profile=Profile(name=name, address=network.block.address())),
        )


async def _remove(path: str) -> None:
    """In a thread: a volume may hold much."""
    await asyncio.to_thread(partial(shutil.rmtree, path, ignore_errors=True))
