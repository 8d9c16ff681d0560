"""Connections on which HTTP is over: WebSockets, and whatever is spoken in bytes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_websocket import WSMsgType
from aiohttp.web_exceptions import HTTPBadRequest
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_ws import WebSocketResponse

from navarch._base.clock import SystemClock
from navarch._base.tasks import unless
from navarch.cluster.embedded.wire import plain_answer
from navarch.cluster.server.wire.request import Reply, Socket, Upgrade

__all__ = ["switched"]

_LARGEST_MESSAGE: Final = 32 * 2**20
_CLOSE_SECONDS: Final = 1.0
_ASK_SECONDS: Final = 5.0
_PIECE: Final = 64 * 1024


async def switched(request: BaseRequest, reply: Reply) -> StreamResponse:
    """Answers with 101 and serves the connection to its end."""
    assert reply.upgrade is not None
    if reply.upgrade.kind == "websocket":
        return await _as_websocket(request, reply, reply.upgrade)
    return await _as_bytes(request, reply, reply.upgrade)


async def _as_websocket(request: BaseRequest, reply: Reply, upgrade: Upgrade) -> StreamResponse:
    protocols = (upgrade.protocol,) if upgrade.protocol else ()
    response = WebSocketResponse(
        protocols=protocols, compress=False, max_msg_size=_LARGEST_MESSAGE, timeout=_CLOSE_SECONDS
    )
    response.headers.update(reply.headers)
    try:
        await response.prepare(request)
    except HTTPBadRequest as error:
        return plain_answer(400, error.text or "")
    with suppress(ConnectionError):
        await unless(_asking(response), _served(upgrade, _Messages(response, text=upgrade.text)))
    await response.close()
    return response


async def _served(upgrade: Upgrade, socket: Socket) -> None:
    await upgrade.serve(socket)


async def _asking(response: WebSocketResponse) -> None:
    """While nobody takes what a client sends, it is not read, and only what is sent to it can find out that it is gone."""
    while True:
        await SystemClock().sleep(_ASK_SECONDS)
        await response.ping()


class _Messages:
    """See `Socket`: a WebSocket."""

    def __init__(self, response: WebSocketResponse, *, text: bool) -> None:
        self._response = response
        self._text = text

    async def receive(self) -> bytes | None:
        message = await self._response.receive()
        if message.type is WSMsgType.BINARY:
            return bytes(message.data)
        return str(message.data).encode() if message.type is WSMsgType.TEXT else None

    async def send(self, data: bytes) -> None:
        if self._text:
            await self._response.send_str(data.decode())
        else:
            await self._response.send_bytes(data)


async def _as_bytes(request: BaseRequest, reply: Reply, upgrade: Upgrade) -> StreamResponse:
    """Takes the connection away from aiohttp, and gives it back when it is over."""
    transport, handler = request.transport, request.protocol
    if transport is None:
        raise ConnectionResetError("the client is gone")
    reader = asyncio.StreamReader()
    protocol = _Bytes(reader, handler)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    if upgrade.kind != "bytes":
        writer.write(_head(reply, upgrade))
    try:
        await upgrade.serve(_Stream(reader, writer))
        await writer.drain()
    finally:
        transport.set_protocol(handler)
        transport.close()
    return _Over()


def _head(reply: Reply, upgrade: Upgrade) -> bytes:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": upgrade.kind,
        "X-Stream-Protocol-Version": upgrade.protocol,
        **reply.headers,
    }
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode()


class _Bytes(asyncio.StreamReaderProtocol):
    """A connection in the place of aiohttp's, which is told when it is lost."""

    def __init__(self, reader: asyncio.StreamReader, handler: RequestHandler) -> None:
        super().__init__(reader)
        self._handler = handler

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._handler.connection_lost(exc)


class _Stream:
    """See `Socket`: bytes as they come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> bytes | None:
        return await self._reader.read(_PIECE) or None

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class _Over(StreamResponse):
    """Everything was said: nothing is written, and the connection is closed."""

    def __init__(self) -> None:
        super().__init__(status=101)
        self.force_close()

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:  # noqa: ARG002 - see above
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing follows."""
