"""Ports over SPDY: any number of connections, each with a stream for data and one for what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from navarch.cluster.server.pipeline.streams.forwarding import Forwarder
from navarch.cluster.server.pipeline.streams.spdy import Connection, Stream
from navarch.cluster.server.wire.request import Socket

__all__ = ["PortStreams"]

_KIND: Final = "streamtype"
_PORT: Final = "port"
_REQUEST: Final = "requestid"
_KINDS: Final = frozenset({"data", "error"})


class PortStreams:
    """The connections of one client."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._waiting: dict[str, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None

    async def serve(self, socket: Socket) -> None:
        """Until the client leaves."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await Connection(socket).run(self)
            for task in self._tasks:
                task.cancel()

    def wants(self, headers: Mapping[str, str]) -> bool:
        """See `Service`."""
        port = headers.get(_PORT, "")
        is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 2**16
        return is_port and headers.get(_KIND) in _KINDS

    def begin(self, stream: Stream) -> None:
        """See `Service`. The other stream of the connection may have come before."""
        request = _request_of(stream)
        other = self._waiting.pop(request, None)
        if other is None or other.headers[_KIND] == stream.headers[_KIND]:
            self._waiting[request] = stream
            return
        data, error = (stream, other) if stream.headers[_KIND] == "data" else (other, stream)
        assert self._group is not None
        task = self._group.create_task(self._carry(data, error))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, data: Stream, error: Stream) -> None:
        fault = await self._forwarder.carry(int(data.headers[_PORT]), _Data(data))
        if fault:
            await error.send(fault.encode())
            await data.reset()
        else:
            await data.finish()
            data.ignore()
        await error.finish()
        error.ignore()


class _Data:
    """See `Peer`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ended = asyncio.Event()

    async def receive(self) -> bytes | None:
        data = await self._stream.receive()
        if data is None:
            self._ended.set()
        return data

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def finish(self) -> None:
        await self._stream.finish()
        await self._ended.wait()


def _request_of(stream: Stream) -> str:
    """Which streams belong together; clients that do not say it open them one after the other."""
    number = stream.number if stream.headers[_KIND] == "error" else stream.number - 2
    return stream.headers.get(_REQUEST) or str(number)
