"""Replies as HTTP responses: buffered, streamed, and upgraded connections (WebSockets, and bytes of other protocols)."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11
from aiohttp.http_websocket import WSMsgType
from aiohttp.http_writer import StreamWriter
from aiohttp.web_exceptions import HTTPBadRequest
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_ws import WebSocketResponse
from multidict import CIMultiDict

from navarch._base.clock import SystemClock
from navarch._base.tasks import unless
from navarch.cluster.embedded.http_connection import (
    text_response,
)
from navarch.cluster.embedded.in_process import warning_header
from navarch.cluster.server.server import RecordedStream
from navarch.cluster.server.wire.request import ApiRequest, Reply, Socket, Upgrade, request_info

_STATUSES: Final = {200: "OK", 201: HTTPStatus.CREATED.phrase}
_HEADERS: Final = ["Audit-Id"]
_JSON: Final = "application/json"
_COMPRESSION_BYTES: Final = 128 * 1024
_WRITE_SECONDS: Final = 60.0
"""The time limit of a write to a client that does not read; then the connection counts as dead."""
_LARGEST_MESSAGE: Final = 32 * 2**20
_CLOSE_SECONDS: Final = 1.0
_PING_SECONDS: Final = 5.0
_READ_BYTES: Final = 64 * 1024


def buffered_response(request: BaseRequest, asked: ApiRequest, reply: Reply) -> StreamResponse:
    """Returns the response of a reply without a stream; compresses a long body if the client accepts gzip."""
    if len(reply.body) < _COMPRESSION_BYTES and is_plain(request, reply):
        return BufferedResponse(reply)
    body, headers = reply.body, _headers(reply)
    if len(body) >= _COMPRESSION_BYTES and _is_compressed(asked):
        body = gzip.compress(body, compresslevel=1)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return Response(body=body, status=reply.status, headers=headers)


def _is_compressed(asked: ApiRequest) -> bool:
    """Returns True if the client accepts gzip, except for lists, which Kubernetes does not compress."""
    return "gzip" in asked.headers.get("accept-encoding", "") and request_info(asked).verb != "list"


def is_plain(request: BaseRequest, reply: Reply) -> bool:
    """Returns True for JSON without warnings and with no special header, on a connection that stays open."""
    return (
        reply.content_type == _JSON
        and reply.status in _STATUSES
        and not reply.warnings
        and [*reply.headers] == _HEADERS
        and reply.headers["Audit-Id"].isprintable()
        and request.method != "HEAD"
        and request.version == HttpVersion11
        and request.keep_alive
    )


class BufferedResponse(StreamResponse):
    """Writes the head and the body of a reply that `is_plain` at once, in a tenth of the time of aiohttp's `Response`."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(status=reply.status)
        self._keep_alive = True
        self._reply = reply

    async def prepare(self, request: BaseRequest) -> StreamWriter:
        """Writes the response. Raises `ConnectionError` if the client is disconnected."""
        writer = request.writer
        assert isinstance(writer, StreamWriter)
        await writer.write(self._head() + self._reply.body)
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Writes nothing: `prepare` wrote the body."""

    def _head(self) -> bytes:
        status, size = self._reply.status, len(self._reply.body)
        return (
            f"HTTP/1.1 {status} {_STATUSES[status]}\r\nAudit-Id: {self._reply.headers['Audit-Id']}\r\n"
            f"Cache-Control: no-cache, private\r\nContent-Type: {_JSON}\r\nContent-Length: {size}\r\n"
            f"Date: {rfc822_formatted_time()}\r\n\r\n"
        ).encode()


def _headers(reply: Reply) -> CIMultiDict[str]:
    headers = CIMultiDict({"Cache-Control": "no-cache, private"})
    if reply.content_type:
        headers["Content-Type"] = reply.content_type
    for name, joined in reply.headers.items():
        if not reply.passed_on:
            headers.popall(name, None)  # a reply's own header replaces the default
        for value in joined.split("\n"):
            headers.add(name, value)
    for text in reply.warnings:
        headers.add("Warning", warning_header(text))
    if reply.content_type.startswith("text/") and not reply.passed_on:
        headers["X-Content-Type-Options"] = "nosniff"
    return headers


async def stream_response(request: BaseRequest, reply: Reply) -> StreamResponse:
    """Writes the chunks of a stream; disconnects a client that does not read, unless the reply is `patient`."""
    assert isinstance(reply.stream, RecordedStream)
    try:
        response = StreamResponse(status=reply.status, headers=_headers(reply))
        await response.prepare(request)
        async for chunk in reply.stream:
            await (response.write(chunk) if reply.patient else _write_chunk(request, chunk))
    finally:
        await reply.stream.aclose()
    return response


async def _write_chunk(request: BaseRequest, chunk: bytes) -> None:
    """Sets a time limit only for a client that does not keep up, since it costs more than the write."""
    writer = request.writer
    assert isinstance(writer, StreamWriter)
    await writer.write(chunk, drain=False)
    if not request.protocol.writing_paused:
        return
    try:
        async with asyncio.timeout(_WRITE_SECONDS):
            await writer.drain()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError(f"the client has read nothing for {_WRITE_SECONDS:g} s") from None


async def upgrade_response(request: BaseRequest, reply: Reply) -> StreamResponse:
    """Answers with 101 and serves the upgraded connection until it ends."""
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
        return text_response(400, error.text or "")
    with suppress(ConnectionError):
        await unless(_ping(response), _serve_socket(upgrade, _WebSocketMessages(response, text=upgrade.text)))
    await response.close()
    return response


async def _serve_socket(upgrade: Upgrade, socket: Socket) -> None:
    await upgrade.serve(socket)


async def _ping(response: WebSocketResponse) -> None:
    """Pings the client: without a read in progress, only a write detects that it has disconnected."""
    while True:
        await SystemClock().sleep(_PING_SECONDS)
        await response.ping()


class _WebSocketMessages:
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
    """Takes the connection from aiohttp, and returns it at the end."""
    transport, handler = request.transport, request.protocol
    if transport is None:
        raise ConnectionResetError("the client is disconnected")
    reader = asyncio.StreamReader()
    protocol = _UpgradedProtocol(reader, handler)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    if upgrade.kind != "bytes":
        writer.write(_upgrade_head(reply, upgrade))
    try:
        await upgrade.serve(_ByteStream(reader, writer))
        await writer.drain()
    finally:
        transport.set_protocol(handler)
        transport.close()
    return _FinishedResponse()


def _upgrade_head(reply: Reply, upgrade: Upgrade) -> bytes:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": upgrade.kind,
        "X-Stream-Protocol-Version": upgrade.protocol,
        **reply.headers,
    }
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode()


class _UpgradedProtocol(asyncio.StreamReaderProtocol):
    """Replaces aiohttp's protocol of a connection, and notifies it when the connection is lost."""

    def __init__(self, reader: asyncio.StreamReader, handler: RequestHandler) -> None:
        super().__init__(reader)
        self._handler = handler

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._handler.connection_lost(exc)


class _ByteStream:
    """See `Socket`: bytes as they come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> bytes | None:
        return await self._reader.read(_READ_BYTES) or None

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class _FinishedResponse(StreamResponse):
    """Writes nothing and closes the connection: the upgraded protocol has ended."""

    def __init__(self) -> None:
        super().__init__(status=101)
        self.force_close()

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:  # noqa: ARG002 - see above
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Writes nothing."""
