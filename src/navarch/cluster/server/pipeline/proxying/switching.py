"""Connections that become something else than HTTP: bytes in both directions, whatever they mean."""

from __future__ import annotations

import asyncio
from functools import partial

from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader

from navarch.cluster.server.pipeline.proxying.asking import Answer
from navarch.cluster.server.wire.request import Socket, Upgrade

__all__ = ["switched"]

_HELD_BYTES = 64 * 1024


def switched(answer: Answer) -> Upgrade:
    """What the client's connection becomes, after an answer with 101."""
    return Upgrade("bytes", "", partial(_serve, answer))


async def _serve(answer: Answer, socket: Socket) -> None:
    """Carries everything until either side has ended."""
    connection = answer.response.connection
    assert connection is not None
    assert connection.protocol is not None
    try:
        await socket.send(_head(answer))
        await _both_ways(connection.protocol, socket)
    finally:
        await answer.aclose()


async def _both_ways(protocol: ResponseHandler, socket: Socket) -> None:
    loop = asyncio.get_running_loop()
    reader, writer = StreamReader(protocol, _HELD_BYTES, loop=loop), StreamWriter(protocol, loop)
    protocol.set_parser(_Passing(reader), reader)
    async with asyncio.TaskGroup() as group:
        ways = [group.create_task(_downward(reader, socket)), group.create_task(_upward(socket, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()


async def _downward(reader: StreamReader, socket: Socket) -> None:
    while piece := await reader.readany():
        await socket.send(piece)


async def _upward(socket: Socket, writer: StreamWriter) -> None:
    while (piece := await socket.receive()) is not None:
        await writer.write(piece)
        await writer.drain()


class _Passing:
    """Stands where aiohttp has the parser of a WebSocket: everything is taken as it comes."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._reader.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self._reader.feed_eof()


def _head(answer: Answer) -> bytes:
    """As it came."""
    response = answer.response
    lines = [f"HTTP/1.1 {response.status} {response.reason}".encode()]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"", b""])
