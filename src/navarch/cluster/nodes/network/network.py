"""`ClusterNetwork`: assigns addresses to pods, writes their hosts files, and runs the proxies of services."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from navarch._base.clock import Clock
from navarch.cache import Cache, Cached, Change
from navarch.client import Client
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.cluster.nodes.network.hosts_file import HostsEntry, hosts_text, names_of
from navarch.cluster.nodes.network.proxies import TcpProxies, UdpProxies
from navarch.cluster.nodes.network.routes import Address, host_ports, routes, wants_host_ports
from navarch.k8s.core.v1 import Node, Pod, Service, ServicePort, ServiceSpec
from navarch.k8s.discovery.v1 import EndpointSlice

_log = logging.getLogger("navarch.nodes")
_PAUSE_SECONDS: Final = 0.01
"""Changes that come together are followed together."""
_API_SERVER: Final = ("default", "kubernetes")


@dataclass(slots=True)
class _NetworkPod:
    pod: Pod
    address: str
    write_hosts: Callable[[bytes], None]
    text: str = ""


class ClusterNetwork:
    """The network of all nodes of a cluster. Run `run`; pods `join` and `leave`."""

    def __init__(self, client: Client, block: LoopbackBlock, clock: Clock, rng: random.Random) -> None:
        self.block = block
        self._clock = clock
        self._cache = Cache(client, clock, rng)
        self._services = self._cache.collection(Service)
        self._slices = self._cache.collection(EndpointSlice)
        self._nodes = self._cache.collection(Cached(Node, keep=("status.addresses",)))
        self._proxies = TcpProxies(rng)
        self._datagrams = UdpProxies(clock, rng)
        self._members: dict[str, _NetworkPod] = {}
        self._names: list[HostsEntry] = []
        self._changed, self._followed = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Watches Services, EndpointSlices and Nodes, and updates proxies and hosts files until it is cancelled."""
        for collection in (self._services, self._slices, self._nodes):
            collection.subscribe(self._heard)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._cache.run(), name="cache of services")
                await self._cache.wait_synced()
                while True:
                    await self._follow()
                    self._followed.set()
                    await self._changed.wait()
                    await self._clock.sleep(_PAUSE_SECONDS)
        finally:
            self._datagrams.close()
            await self._proxies.close()

    async def services(self) -> list[Service]:
        """Returns all services as pods reach them, after the first sync.

        The API server's service has the server's own address if its port cannot be bound (ports below 1024 may need
        root).
        """
        await self._followed.wait()
        return [self._found(service) for service in self._known()]

    def _known(self) -> list[Service]:
        return [self._services.view(entry) for entry in self._services.entries()]

    def _found(self, service: Service) -> Service:
        if (service.namespace, service.name) != _API_SERVER or not service.spec.ports:
            return service
        port = service.spec.ports[0]
        behind = self._proxies.behind((service.spec.cluster_ip or "", port.port))
        if not behind:
            return service
        address, number = behind[0]
        spec = ServiceSpec(cluster_ip=address, ports=[ServicePort(name=port.name, protocol=port.protocol, port=number)])
        return Service(name=service.name, namespace=service.namespace, spec=spec)

    def join(self, pod: Pod, write_hosts: Callable[[bytes], None]) -> str:
        """Assigns an address to the pod and writes its hosts file, which is updated until the pod leaves.

        Raises the `OSError` of `write_hosts`; a later one is logged, and the next change is written again.
        """
        known = self._members.get(pod.metadata.uid)
        if known is None:
            known = self._members[pod.metadata.uid] = _NetworkPod(pod, self.block.address(), write_hosts)
            self._note(known)
        self._write(known)
        return known.address

    def leave(self, uid: str) -> None:
        """Releases the pod's address."""
        member = self._members.pop(uid, None)
        if member is not None:
            self.block.give_back(member.address)
            self._note(member)

    def _note(self, member: _NetworkPod) -> None:
        """Notifies of a change if the pod has host ports."""
        if wants_host_ports(member.pod):
            self._changed.set()

    def _heard(self, _: Change) -> None:
        self._changed.set()

    async def _follow(self) -> None:
        self._changed.clear()
        services = self._known()
        slices = [self._slices.view(entry) for entry in self._slices.entries()]
        nodes = _addresses((self._nodes.view(entry) for entry in self._nodes.entries()), self.block)
        places, pods = sorted(nodes.values()), [(member.pod, member.address) for member in self._members.values()]
        datagrams = host_ports(pods, nodes, protocol="UDP") | routes(services, slices, places, protocol="UDP")
        self._datagrams.follow(datagrams)
        await self._proxies.follow(host_ports(pods, nodes) | routes(services, slices, places), _bypassed(services))
        self._names = names_of([self._found(service) for service in services], slices)
        for member in self._members.values():
            try:
                self._write(member)
            except OSError as error:  # its disk may be full: the others are written, and this one at the next change
                pod = member.pod
                _log.warning(
                    "writing the hosts file of pod %s/%s failed: %s; the next change writes it again",
                    pod.namespace,
                    pod.name,
                    error,
                )

    def _write(self, member: _NetworkPod) -> None:
        text = hosts_text(member.pod, member.address, self._names)
        if text != member.text:
            member.write_hosts(text.encode())
            member.text = text


def _bypassed(services: Iterable[Service]) -> frozenset[Address]:
    """Returns the addresses of the API server's service, which pods reach directly."""
    return frozenset(
        (service.spec.cluster_ip or "", port.port)
        for service in services
        if (service.namespace, service.name) == _API_SERVER
        for port in service.spec.ports or ()
    )


def _addresses(nodes: Iterable[Node], block: LoopbackBlock) -> dict[str, str]:
    """Returns the addresses of nodes by name, without addresses outside of this cluster's block."""
    found = {
        node.name: known.address
        for node in nodes
        for known in node.status.addresses or []
        if known.type == "InternalIP"
    }
    return {name: address for name, address in found.items() if block.has(address)}
