"""HTTPS on loopback: requests from the network to the server, and its replies back."""

from __future__ import annotations

import asyncio
import gzip
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import unquote, unquote_plus

import msgspec
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server
from msgspec.structs import replace
from multidict import CIMultiDict

from navarch._base.clock import SystemClock
from navarch.cluster.embedded.transport import warning_header
from navarch.cluster.embedded.upgrades import switched
from navarch.cluster.embedded.whole import AtOnce, is_plain
from navarch.cluster.embedded.wire import (
    BACKLOG,
    HEAD_SECONDS,
    LONGEST_HEAD,
    Connection,
    Heads,
    listening,
    plain_answer,
)
from navarch.cluster.server.server import ApiServer, RecordedStream
from navarch.cluster.server.wire.bodies import LIMIT_BYTES
from navarch.cluster.server.wire.request import ApiRequest, Reply, is_passed_on, request_info
from navarch.cluster.server.wire.status_errors import UNEXPECTED, StatusError

__all__ = ["HttpServer"]

_log = logging.getLogger("navarch.cluster.server")

_COMPRESSED_FROM: Final = 128 * 1024
_PATIENCE: Final = 60.0
"""Seconds that a reader of a stream may take for what the connection holds; then it counts as dead."""
_IDLE_SECONDS: Final = 90.0
_DRAIN_SECONDS: Final = 5.0
_TURNS_TO_CLOSE: Final = 5
_LONGEST_LINE: Final = 128 * 1024
"""Bytes of a request line. Selectors and the like are taken apart letter by letter."""
_MOST_HEADERS: Final = 10_000
_BODY_SECONDS: Final = 60.0
"""What a body may take to come; Kubernetes gives a whole request that long."""
_KNOWN_QUERIES: Final = 1024
_SHORT_QUERY: Final = 200
_CONTINUE: Final = "100-continue"
_READING: Final = frozenset({"GET", "HEAD"})
_ABSOLUTE: Final = re.compile("^https?://[^/?]*(?=/)")
"""What stands before the path in a request through a proxy."""
_BROKEN_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_TOO_LARGE: Final = b" " * (LIMIT_BYTES + 1)
"""Stands for every body beyond the limit; the server says what is to be said about it."""

Handler = Callable[[BaseRequest], Awaitable[StreamResponse]]


class HttpServer:
    """Serves `server` at a loopback address; use it as an `async with`. A `port` of 0 is any that is free.

    What is under way when it ends has a few seconds to be finished; streams end at once.
    """

    def __init__(self, server: ApiServer, context: ssl.SSLContext, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = server
        self._context = context
        self._host = host
        self._port = port
        self._web: _Connections | None = None
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The host and port at which it listens while it runs."""
        assert self._listener is not None, "the server must be running"
        return self._host, self._listener.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        """Where it can be reached while it runs."""
        host, port = self.address
        return f"https://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._web = _Connections(
            self._answer,
            request_factory=_bounded_request,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=_IDLE_SECONDS,
            max_line_size=_LONGEST_LINE,
            max_field_size=LONGEST_HEAD,
            max_headers=_MOST_HEADERS,
        )
        self._listener = await asyncio.get_running_loop().create_server(
            self._web,
            sock=listening(self._host, self._port),
            ssl=self._context,
            ssl_handshake_timeout=HEAD_SECONDS,
            backlog=BACKLOG,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._listener is not None
        assert self._web is not None
        self._listener.close()
        for task in self._web.streaming.values():
            task.cancel()
        transports = [handler.transport for handler in self._web.connections]
        self._web.pre_shutdown()
        await self._web.shutdown(_DRAIN_SECONDS)
        await _aborted(transports)

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        """The answer to any request. What this server cannot even put into words is its own fault: 500, and on the log."""
        try:
            return await self._answered(request)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            if request.writer.output_size > 0:
                raise  # the answer has begun: the connection is closed
            _log.exception("%s %r failed", request.method, request.raw_path)
            return _status_answer(UNEXPECTED)

    async def _answered(self, request: BaseRequest) -> StreamResponse:
        if (refused := _not_taken(request)) is not None:
            return refused
        if "/proxy" in request.raw_path and is_passed_on(asked := _asked(request, b"")):
            return await self._passed_on(request, asked)
        try:
            body = b"" if request.method in _READING else await _body(request)
        except TimeoutError:
            return _late()
        asked = _asked(request, body)
        reply = await self._server.handle(asked)
        if reply.stream is None and reply.upgrade is None:
            return _whole(request, asked, reply)
        assert self._web is not None
        with self._web.ended_with(request.protocol):
            return await (_streamed if reply.upgrade is None else switched)(request, reply)

    async def _passed_on(self, request: BaseRequest, asked: ApiRequest) -> StreamResponse:
        """The body goes on as it comes, and nothing goes on when the client leaves."""
        assert self._web is not None
        incoming = _pieces(request) if request.body_exists else None
        with self._web.ended_with(request.protocol):
            reply = await self._server.handle(replace(asked, incoming=incoming))
            if reply.stream is None and reply.upgrade is None:
                return _whole(request, asked, reply)
            return await (_streamed if reply.upgrade is None else switched)(request, reply)


class _Connections(Server):
    """A client that leaves cuts off the stream that it reads, but nothing else: what is being written is written.

    `streaming` has the tasks that send streams, by connection.
    """

    def __init__(self, handler: Handler, **options: Any) -> None:
        super().__init__(handler, **options)
        self.streaming: dict[RequestHandler, asyncio.Task[Any]] = {}
        self._heads = Heads()

    @contextmanager
    def ended_with(self, handler: RequestHandler) -> Iterator[None]:
        """The present task is cancelled when the client leaves, while the block lasts."""
        task = asyncio.current_task()
        assert task is not None
        self.streaming[handler] = task
        try:
            yield
        finally:
            del self.streaming[handler]

    def __call__(self) -> RequestHandler:
        return Connection(self, self._heads, loop=self._loop, **self._kwargs)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        if (task := self.streaming.get(handler)) is not None:
            task.cancel()


async def _streamed(request: BaseRequest, reply: Reply) -> StreamResponse:
    """Chunk by chunk, as fast as the client reads; one that does not read for long is cut off, if that matters."""
    assert isinstance(reply.stream, RecordedStream)
    try:
        response = StreamResponse(status=reply.status, headers=_headers(reply))
        await response.prepare(request)
        async for chunk in reply.stream:
            await (response.write(chunk) if reply.patient else _written(request, chunk))
    finally:
        await reply.stream.aclose()
    return response


def _not_taken(request: BaseRequest) -> Response | None:
    """What Go's server does not hand on."""
    if request.version.major != 1:
        return plain_answer(505, "unsupported protocol version")
    if "%" in request.raw_path and _BROKEN_ESCAPE.search(request.raw_path.partition("?")[0]):
        return plain_answer(400)
    if request.headers.get("Expect", _CONTINUE).lower() != _CONTINUE:
        return plain_answer(417)
    return None


async def _pieces(request: BaseRequest) -> AsyncIterator[bytes]:
    await _go_on(request)
    while piece := await request.content.readany():
        yield piece


async def _go_on(request: BaseRequest) -> None:
    """The body is wanted: some clients wait for that."""
    if "Expect" in request.headers:
        assert isinstance(request.writer, StreamWriter)
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


async def _body(request: BaseRequest) -> bytes:
    await _go_on(request)
    if request.content.is_eof():  # as most are: a time limit would cost more than all the rest of this
        return await _read(request)
    async with asyncio.timeout(_BODY_SECONDS):
        return await _read(request)


async def _read(request: BaseRequest) -> bytes:
    try:
        return await request.read()
    except HTTPRequestEntityTooLarge:
        return _TOO_LARGE


def _late() -> Response:
    """What Kubernetes says to a request that does not come to its end."""
    return _status_answer(
        StatusError(504, "Timeout", "Timeout: request did not complete within the allotted timeout", details={})
    )


def _status_answer(refusal: StatusError) -> Response:
    """A Status, after which the connection is closed."""
    response = Response(
        body=msgspec.json.encode(refusal.status()), status=refusal.code, content_type="application/json"
    )
    response.force_close()
    return response


async def _aborted(transports: Sequence[asyncio.Transport | None]) -> None:
    """Everything was said: nobody is waited for to say goodbye."""
    for transport in transports:
        if transport is not None:
            transport.abort()
    for _ in range(_TURNS_TO_CLOSE):
        await SystemClock().sleep(0)


async def _written(request: BaseRequest, chunk: bytes) -> None:
    """A time limit would cost more than the rest, so that there is one only for readers who do not keep up."""
    writer = request.writer
    assert isinstance(writer, StreamWriter)
    await writer.write(chunk, drain=False)
    if not request.protocol.writing_paused:
        return
    try:
        async with asyncio.timeout(_PATIENCE):
            await writer.drain()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError(f"the client has read nothing for {_PATIENCE:g} s") from None


def _bounded_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> BaseRequest:
    return BaseRequest(message, payload, protocol, writer, task, task.get_loop(), client_max_size=LIMIT_BYTES)


def _asked(request: BaseRequest, body: bytes) -> ApiRequest:
    path, _, query = _ABSOLUTE.sub("", _text(request.raw_path)).partition("?")
    return ApiRequest(
        method=request.method,
        path=unquote(path),
        query=_known_parameters(query) if len(query) <= _SHORT_QUERY else _parameters(query),
        headers=_lower_headers(request),
        body=body,
        certificate=_certificate(request),
        source=request.remote or "",
        raw_query=query,
    )


@lru_cache(_KNOWN_QUERIES)
def _known_parameters(text: str) -> Mapping[str, Sequence[str]]:
    """Many requests have the same ones."""
    return _parameters(text)


def _parameters(text: str) -> Mapping[str, Sequence[str]]:
    """As Go reads them: what is no parameter is passed over.

    >>> _parameters("a=1&b=x+y&a=%32&c;d=3&%zz=4&e")
    {'a': ['1', '2'], 'b': ['x y'], 'e': ['']}
    """
    found: dict[str, list[str]] = {}
    for pair in text.split("&"):
        if pair and ";" not in pair and not _BROKEN_ESCAPE.search(pair):
            name, _, value = pair.partition("=")
            found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return found


def _lower_headers(request: BaseRequest) -> dict[str, str]:
    headers: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        lower, text = name.lower(), _text(value)
        if lower in headers:
            repeated.setdefault(lower, [headers[lower]]).append(text)
        else:
            headers[lower] = text
    return headers | {name: "\n".join(values) for name, values in repeated.items()} if repeated else headers


def _text(received: str) -> str:
    r"""What aiohttp has read, as text that can be written again: what is not UTF-8 becomes U+FFFD, as Go writes it.

    >>> _text("J\udcfcrgen") == "J\ufffdrgen"
    True
    """
    return received if received.isascii() else received.encode(errors="surrogateescape").decode(errors="replace")


def _certificate(request: BaseRequest) -> bytes | None:
    """The client's, if it showed one: TLS has verified it."""
    secured = request.get_extra_info("ssl_object")
    return secured.getpeercert(binary_form=True) if secured is not None else None


def _whole(request: BaseRequest, asked: ApiRequest, reply: Reply) -> StreamResponse:
    if len(reply.body) < _COMPRESSED_FROM and is_plain(request, reply):
        return AtOnce(reply)
    body, headers = reply.body, _headers(reply)
    if len(body) >= _COMPRESSED_FROM and _is_compressed(asked):
        body = gzip.compress(body, compresslevel=1)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return Response(body=body, status=reply.status, headers=headers)


def _is_compressed(asked: ApiRequest) -> bool:
    """Kubernetes compresses what is long, but lists never: it begins to send them before it knows."""
    return "gzip" in asked.headers.get("accept-encoding", "") and request_info(asked).verb != "list"


def _headers(reply: Reply) -> CIMultiDict[str]:
    headers = CIMultiDict({"Cache-Control": "no-cache, private"})
    if reply.content_type:
        headers["Content-Type"] = reply.content_type
    for name, joined in reply.headers.items():
        if not reply.passed_on:
            headers.popall(name, None)  # a reply's own header is instead of the usual one
        for value in joined.split("\n"):
            headers.add(name, value)
    for text in reply.warnings:
        headers.add("Warning", warning_header(text))
    if reply.content_type.startswith("text/") and not reply.passed_on:
        headers["X-Content-Type-Options"] = "nosniff"
    return headers
