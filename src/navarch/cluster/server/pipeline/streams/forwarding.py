"""One connection between a client and a port of a pod, whatever the wire between them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from navarch.cluster.streams import PodStreams
from navarch.errors import ContainerError

__all__ = ["Forwarder", "Peer"]

_PIECE: Final = 32 * 1024


class Peer(Protocol):
    """The client's side of one connection."""

    async def receive(self) -> bytes | None:
        """What the client sends; None when nothing more comes."""
        ...

    async def send(self, data: bytes) -> None:
        """Carries bytes to the client."""
        ...

    async def finish(self) -> None:
        """The pod sends nothing more. Returns when the client has finished too, or cannot know."""
        ...


class Forwarder(msgspec.Struct, frozen=True):
    """Connects clients with one pod."""

    node: PodStreams
    pod_uid: str

    async def carry(self, port: int, peer: Peer) -> str:
        """Carries everything between the client and the port until both are done; returns what went wrong, if anything."""
        try:
            reader, writer = await self.node.forward(self.pod_uid, port)
        except ContainerError as error:
            return self._failed(port, error)
        fault = ""
        try:
            await _both_ways(reader, writer, peer)
        except* OSError as errors:
            fault = self._failed(port, errors.exceptions[0])
        finally:
            writer.close()
        return fault

    def _failed(self, port: int, error: BaseException) -> str:
        return f"error forwarding port {port} to pod {self.pod_uid}, uid : {error}"


async def _both_ways(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer) -> None:
    async with asyncio.TaskGroup() as group:
        upward = group.create_task(_upward(writer, peer))
        while data := await reader.read(_PIECE):
            await peer.send(data)
        await peer.finish()
        upward.cancel()


async def _upward(writer: asyncio.StreamWriter, peer: Peer) -> None:
    """What the pod no longer reads is dropped: whether it has more to say is for the other direction to find out."""
    while (data := await peer.receive()) is not None:
        with suppress(OSError):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()
