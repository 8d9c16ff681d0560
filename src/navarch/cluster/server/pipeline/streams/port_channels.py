"""Ports over the channels of a WebSocket: two for each, for data and for what goes wrong.

Each begins with the number of the port. Neither side can finish alone: there is one connection to each port, and the
WebSocket ends when all of them have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from navarch.cluster.server.pipeline.streams.channels import Channels
from navarch.cluster.server.pipeline.streams.forwarding import Forwarder
from navarch.cluster.server.pipeline.streams.lane import Lane

__all__ = ["PortChannels"]


class PortChannels:
    """The connections of one WebSocket."""

    def __init__(self, channels: Channels, ports: Sequence[int]) -> None:
        self._channels = channels
        self._ports = [_Port(channels, index, port) for index, port in enumerate(ports)]

    async def run(self, forwarder: Forwarder) -> None:
        """Carries everything until all connections have ended, or the client leaves."""
        for port in self._ports:
            await port.greet()
        async with asyncio.TaskGroup() as group:
            carrying = group.create_task(self._carry(forwarder))
            receiving = group.create_task(self._receive())
            await asyncio.wait((carrying, receiving), return_when=asyncio.FIRST_COMPLETED)
            carrying.cancel()
            receiving.cancel()

    async def _carry(self, forwarder: Forwarder) -> None:
        async with asyncio.TaskGroup() as group:
            for port in self._ports:
                group.create_task(port.carry(forwarder))

    async def _receive(self) -> None:
        while (piece := await self._channels.receive()) is not None:
            number, is_error = divmod(piece.channel, 2)
            if number < len(self._ports) and not is_error and piece.data:
                await self._ports[number].coming.put(piece.data)


class _Port:
    """See `Peer`."""

    def __init__(self, channels: Channels, index: int, port: int) -> None:
        self._channels = channels
        self._data, self._error = 2 * index, 2 * index + 1
        self._port = port
        self.coming = Lane()

    async def greet(self) -> None:
        for channel in (self._data, self._error):
            await self._channels.send(channel, self._port.to_bytes(2, "little"))

    async def carry(self, forwarder: Forwarder) -> None:
        fault = await forwarder.carry(self._port, self)
        self.coming.close()
        if fault:
            await self._channels.send(self._error, fault.encode())

    async def receive(self) -> bytes | None:
        return await self.coming.get()

    async def send(self, data: bytes) -> None:
        await self._channels.send(self._data, data)

    async def finish(self) -> None:
        """The client cannot be told, nor tell."""
