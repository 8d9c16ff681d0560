"""Services at their own addresses: each port is a small proxy in front of the pods behind it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from navarch._base.tasks import cancel_and_wait
from navarch.cluster.nodes.network.names import SERVICE_LABEL
from navarch.k8s.core.v1 import Service, ServicePort
from navarch.k8s.discovery.v1 import EndpointSlice

__all__ = ["Address", "Proxies", "routes"]

Address = tuple[str, int]
_PIECE: Final = 65536

_log = logging.getLogger("navarch.nodes")


def routes(
    services: Iterable[Service], slices: Iterable[EndpointSlice], nodes: Sequence[str] = (), *, protocol: str = "TCP"
) -> dict[Address, list[Address]]:
    """Where the ports of services, and their ports on nodes of these addresses, lead to: pods that are ready or, if none
    is, those that still serve while they end.
    """
    parts: dict[tuple[str, str], list[EndpointSlice]] = {}
    for part in slices:
        parts.setdefault((part.namespace, part.labels.get(SERVICE_LABEL, "")), []).append(part)
    found: dict[Address, list[Address]] = {}
    for service in services:
        own = parts.get((service.namespace, service.name), [])
        for port in service.spec.ports or []:
            if (port.protocol or "TCP") == protocol and _is_proxied(service.spec.cluster_ip or ""):
                found |= dict.fromkeys(_places(service, port, nodes), _behind(own, port.name or ""))
    return found


def _places(service: Service, port: ServicePort, nodes: Sequence[str]) -> list[Address]:
    """Where a port of a service is to be reached."""
    on_nodes = [(node, port.node_port) for node in nodes if port.node_port]
    return [(service.spec.cluster_ip or "", port.port), *on_nodes]


def _is_proxied(address: str) -> bool:
    """Whether that is an address of this machine, and not of a cluster with a network of its own."""
    return address not in {"", "None"} and ipaddress.ip_address(address).is_loopback


def _behind(parts: Iterable[EndpointSlice], name: str) -> list[Address]:
    ready: list[Address] = []
    ending: list[Address] = []
    for part in parts:
        port = next((known.port for known in part.ports or [] if (known.name or "") == name), None)
        for endpoint in part.endpoints or [] if port is not None else []:
            conditions = endpoint.conditions
            addresses = [(address, port or 0) for address in endpoint.addresses]
            if conditions is None or conditions.ready is not False:
                ready += addresses
            elif conditions.serving and conditions.terminating:
                ending += addresses
    return ready or ending


class Proxies:
    """Keeps one listener for each port of each service. Connections that are open outlive changes of the service."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._listeners: dict[Address, asyncio.Server] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._routes: Mapping[Address, list[Address]] = {}
        self._refused: dict[Address, str] = {}
        self._bypassed: frozenset[Address] = frozenset()

    def behind(self, address: Address) -> list[Address]:
        """Where the port of a service leads to that has no listener, since this machine refuses one; else nowhere."""
        return self._routes.get(address, []) if address in self._refused else []

    async def follow(self, wanted: Mapping[Address, list[Address]], bypassed: frozenset[Address] = frozenset()) -> None:
        """Services are as `wanted` says from now on; nobody misses a listener at those that are `bypassed`."""
        self._routes, self._bypassed = wanted, bypassed
        for address in [known for known in self._listeners if known not in wanted]:
            self._listeners.pop(address).close()
        self._refused = {address: why for address, why in self._refused.items() if address in wanted}
        for address in [new for new in wanted if new not in self._listeners]:
            await self._listen(address)

    async def _listen(self, address: Address) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own = asyncio.current_task()
            assert own is not None
            self._connections.add(own)
            try:
                await self._serve(address, reader, writer)
            except asyncio.CancelledError:  # by `close`: a server would log it as a fault
                return
            finally:
                self._connections.discard(own)

        try:
            self._listeners[address] = await asyncio.start_server(serve, *address)
        except OSError as error:
            self._refuse(address, str(error))
        else:
            self._refused.pop(address, None)

    def _refuse(self, address: Address, why: str) -> None:
        """Notes it, to try again with the next change; it is said once."""
        if self._refused.get(address) != why:
            level = logging.DEBUG if address in self._bypassed else logging.WARNING
            _log.log(level, "service at %s:%d cannot be reached: %s", *address, why)
        self._refused[address] = why

    async def close(self) -> None:
        """No service is reached any more, and every connection has ended."""
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()
        await cancel_and_wait(*self._connections)

    async def _serve(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            found = await self._connected(address)
            if found is not None:
                await _joined((reader, found[1]), (found[0], writer))
        finally:
            writer.close()

    async def _connected(self, address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """One of the pods, by chance; one that refuses is passed over."""
        pods = list(self._routes.get(address, ()))
        self._rng.shuffle(pods)
        for pod in pods:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(*pod)
        return None


async def _joined(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Carries bytes both ways until both ends have said all."""
    try:
        async with asyncio.TaskGroup() as group:
            for reader, writer in ways:
                group.create_task(_carry(reader, writer))
    except* OSError:
        pass
    finally:
        for _, writer in ways:
            writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
