"""Proxies of services: a TCP or UDP listener for each port of each service forwards to a pod."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from navarch._base.clock import Clock
from navarch._base.tasks import cancel_and_wait
from navarch.cluster.nodes.network.routes import Address

_log = logging.getLogger("navarch.nodes")
_LARGEST: Final = 65536
_IDLE_SECONDS: Final = 60.0
"""A client that was silent for so long may get another pod."""
_PIECE: Final = 65536


@dataclass(slots=True)
class _Flow:
    """The forwarding between one client and one pod."""

    pod: Address
    link: socket.socket
    used_at: float


class _UdpListener:
    """The listener of one port of one service."""

    def __init__(self, address: Address, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._flows: dict[Address, _Flow] = {}
        self._loop = asyncio.get_running_loop()
        self.pods: list[Address] = []
        self._socket = _bound(address)
        self._loop.add_reader(self._socket, self._asked)

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for client in list(self._flows):
            self._end(client)

    def _asked(self) -> None:
        while True:
            try:
                data, client = self._socket.recvfrom(_LARGEST)
            except OSError:
                return
            self._send(client, data)

    def _send(self, client: Address, data: bytes) -> None:
        """Forwards a datagram to the client's pod; drops it if there is no pod."""
        flow = self._flows.get(client)
        if flow is None or flow.pod not in self.pods:
            flow = self._begun(client)
        if flow is not None:
            flow.used_at = self._clock.monotonic()
            try:
                flow.link.send(data)
            except OSError:
                self._end(client)

    def _begun(self, client: Address) -> _Flow | None:
        self._forget_silent()
        self._end(client)
        if not self.pods:
            return None
        pod = self._rng.choice(self.pods)
        link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.setblocking(False)
        link.connect(pod)
        self._loop.add_reader(link, self._answered, client, link)
        flow = self._flows[client] = _Flow(pod, link, self._clock.monotonic())
        return flow

    def _answered(self, client: Address, link: socket.socket) -> None:
        while True:
            try:
                self._socket.sendto(link.recv(_LARGEST), client)
            except OSError:
                return

    def _forget_silent(self) -> None:
        now = self._clock.monotonic()
        for client in [client for client, flow in self._flows.items() if now - flow.used_at > _IDLE_SECONDS]:
            self._end(client)

    def _end(self, client: Address) -> None:
        flow = self._flows.pop(client, None)
        if flow is not None:
            self._loop.remove_reader(flow.link)
            flow.link.close()


def _bound(address: Address) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        found.setblocking(False)
        found.bind(address)
    except OSError:
        found.close()
        raise
    return found


class UdpProxies:
    """Keeps a listener for each UDP port of each service."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._listeners: dict[Address, _UdpListener] = {}

    def follow(self, wanted: Mapping[Address, list[Address]]) -> None:
        """Opens and closes listeners so that they match `wanted`."""
        for address in [known for known in self._listeners if known not in wanted]:
            self._listeners.pop(address).close()
        for address, pods in wanted.items():
            listener = self._listeners.get(address) or self._listening(address)
            if listener is not None:
                listener.pods = pods

    def _listening(self, address: Address) -> _UdpListener | None:
        try:
            listener = self._listeners[address] = _UdpListener(address, self._clock, self._rng)
        except OSError as error:
            _log.warning("cannot listen on service address %s:%d (UDP): %s", *address, error)
            return None
        return listener

    def close(self) -> None:
        """Closes all listeners."""
        self.follow({})


class TcpProxies:
    """Keeps a listener for each TCP port of each service. Open connections survive changes of the service."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._listeners: dict[Address, asyncio.Server] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._routes: Mapping[Address, list[Address]] = {}
        self._refused: dict[Address, str] = {}
        self._bypassed: frozenset[Address] = frozenset()

    def behind(self, address: Address) -> list[Address]:
        """Returns the backends of a service port for which this machine refused a listener; else none."""
        return self._routes.get(address, []) if address in self._refused else []

    async def follow(self, wanted: Mapping[Address, list[Address]], bypassed: frozenset[Address] = frozenset()) -> None:
        """Opens and closes listeners so that they match `wanted`; a missing listener of a `bypassed` address is not
        reported.
        """
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
        """Notes a refused listener, which the next change retries; logs each reason once."""
        if self._refused.get(address) != why:
            level = logging.DEBUG if address in self._bypassed else logging.WARNING
            _log.log(level, "cannot listen on service address %s:%d: %s", *address, why)
        self._refused[address] = why

    async def close(self) -> None:
        """Closes all listeners and connections."""
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
        """Connects to a random pod; tries the next one after a refusal."""
        pods = list(self._routes.get(address, ()))
        self._rng.shuffle(pods)
        for pod in pods:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(*pod)
        return None


async def _joined(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Copies bytes both ways until both ends have closed."""
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
