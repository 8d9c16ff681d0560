"""Where the probe runs in pods: in containers of a real node, or as processes of an embedded one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

import rig
from namespaces import in_new_namespace
from navarch.client import Client, Impersonation, Transport, connect, load
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.equipment import Equipment
from navarch.cluster.nodes.images import Image, Images

PROGRAM = Path(__file__).parent / "probe.py"


@dataclass(frozen=True)
class Site:
    """A cluster with a node; `client` has a namespace of its own."""

    client: Client
    connect: Callable[[], Client]
    """Another client of the same namespace."""
    connect_as: Callable[[str], Client]
    """A client of somebody else."""

    @property
    def transport(self) -> Transport:
        """What the client sends its requests through."""
        kept: list[Transport] = []

        def keep(transport: Transport) -> Transport:
            kept.append(transport)
            return transport

        self.client.through(keep)
        return kept[0]


@asynccontextmanager
async def real_site(cluster: rig.Cluster) -> AsyncIterator[Site]:
    """The node of the rig, which has the probe as an image."""
    config = load(cluster.kubeconfig)
    async with connect(config) as connected, in_new_namespace(connected) as client:
        here = msgspec.structs.replace(config, namespace=client.options.namespace)

        def connect_as(name: str) -> Client:
            return connect(msgspec.structs.replace(here, impersonate=Impersonation(user=name)))

        yield Site(client, lambda: connect(here), connect_as)


@asynccontextmanager
async def embedded_site(folder: Path) -> AsyncIterator[Site]:
    """A process node that knows the image of the probe: the same program in Python."""
    equipment = Equipment(nodes=1, folder=folder / "node", images=probe_image(folder))
    async with EmbeddedCluster(equipment=equipment) as cluster, in_new_namespace(cluster.client()) as client:
        namespace = client.options.namespace
        yield Site(
            client,
            lambda: cluster.client(namespace),
            lambda name: cluster.client_as(name, namespace=namespace),
        )


def probe_image(folder: Path) -> Path:
    """The file with the image of the probe, which listens on its pod's own address."""
    program = folder / "bin" / "probe"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -IS\n{PROGRAM.read_text()}")
    program.chmod(0o755)
    path = folder / "images.json"
    name = rig.PROBE_IMAGE.partition(":")[0]
    Images(path=path).add(Image(name=name, argv=(str(program),), always=("--address", "$(POD_IP)")))
    return path
