"""`HttpServer`: serves an `ApiServer` over HTTPS on loopback; reads requests with limits."""

from __future__ import annotations

import asyncio
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

from navarch._base.clock import SystemClock
from navarch.cluster.embedded.http_connection import (
    BACKLOG,
    HEAD_SECONDS,
    LONGEST_HEAD,
    HttpConnection,
    PendingHeads,
    listen,
    text_response,
)
from navarch.cluster.embedded.responses import buffered_response, stream_response, upgrade_response
from navarch.cluster.server.server import ApiServer
from navarch.cluster.server.wire.bodies import LIMIT_BYTES
from navarch.cluster.server.wire.request import ApiRequest, is_passed_on
from navarch.cluster.server.wire.status_errors import UNEXPECTED, StatusError

_log = logging.getLogger("navarch.cluster.server")

_IDLE_SECONDS: Final = 90.0
_DRAIN_SECONDS: Final = 5.0
_TURNS_TO_CLOSE: Final = 5
_LONGEST_LINE: Final = 128 * 1024
"""Bytes of a request line; selectors in it are parsed character by character."""
_MOST_HEADERS: Final = 10_000
_BODY_SECONDS: Final = 60.0
"""The time limit of a body; Kubernetes' limit of a whole request."""
_KNOWN_QUERIES: Final = 1024
_SHORT_QUERY: Final = 200
_CONTINUE: Final = "100-continue"
_READING: Final = frozenset({"GET", "HEAD"})
_ABSOLUTE: Final = re.compile("^https?://[^/?]*(?=/)")
"""The part before the path in a request through a proxy."""
_BROKEN_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_TOO_LARGE: Final = b" " * (LIMIT_BYTES + 1)
"""Replaces a body beyond the limit; the server refuses it by its length."""

Handler = Callable[[BaseRequest], Awaitable[StreamResponse]]


class HttpServer:
    """Serves `server` at a loopback address; use it as an `async with`. A `port` of 0 takes any free one.

    At the end, requests in progress have a few seconds to finish; streams end at once.
    """

    def __init__(self, server: ApiServer, context: ssl.SSLContext, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = server
        self._context = context
        self._host = host
        self._port = port
        self._web: _HttpConnections | None = None
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The host and port at which it listens."""
        assert self._listener is not None, "the server must be running"
        return self._host, self._listener.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        """The URL at which it listens."""
        host, port = self.address
        return f"https://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._web = _HttpConnections(
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
            sock=listen(self._host, self._port),
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
        await _abort(transports)

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        """Answers a request; an unexpected exception becomes a Status with 500 and a traceback in the log."""
        try:
            return await self._answered(request)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            if request.writer.output_size > 0:
                raise  # the response has started: aiohttp closes the connection
            _log.exception("%s %r failed", request.method, request.raw_path)
            return _status_response(UNEXPECTED)

    async def _answered(self, request: BaseRequest) -> StreamResponse:
        if (refused := _rejected(request)) is not None:
            return refused
        if "/proxy" in request.raw_path and is_passed_on(asked := _api_request(request, b"")):
            return await self._passed_on(request, asked)
        try:
            body = b"" if request.method in _READING else await _body(request)
        except TimeoutError:
            return _timeout_response()
        asked = _api_request(request, body)
        reply = await self._server.handle(asked)
        if reply.stream is None and reply.upgrade is None:
            return buffered_response(request, asked, reply)
        assert self._web is not None
        with self._web.ended_with(request.protocol):
            return await (stream_response if reply.upgrade is None else upgrade_response)(request, reply)

    async def _passed_on(self, request: BaseRequest, asked: ApiRequest) -> StreamResponse:
        """Streams the body of a proxied request; the request ends when the client disconnects."""
        assert self._web is not None
        incoming = _pieces(request) if request.body_exists else None
        with self._web.ended_with(request.protocol):
            reply = await self._server.handle(replace(asked, incoming=incoming))
            if reply.stream is None and reply.upgrade is None:
                return buffered_response(request, asked, reply)
            return await (stream_response if reply.upgrade is None else upgrade_response)(request, reply)


class _HttpConnections(Server):
    """Cancels the stream of a client that disconnects, but no other request: writes finish.

    `streaming` holds the tasks that send streams, by connection.
    """

    def __init__(self, handler: Handler, **options: Any) -> None:
        super().__init__(handler, **options)
        self.streaming: dict[RequestHandler, asyncio.Task[Any]] = {}
        self._heads = PendingHeads()

    @contextmanager
    def ended_with(self, handler: RequestHandler) -> Iterator[None]:
        """Cancels the current task when the client disconnects inside the block."""
        task = asyncio.current_task()
        assert task is not None
        self.streaming[handler] = task
        try:
            yield
        finally:
            del self.streaming[handler]

    def __call__(self) -> RequestHandler:
        return HttpConnection(self, self._heads, loop=self._loop, **self._kwargs)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        if (task := self.streaming.get(handler)) is not None:
            task.cancel()


def _rejected(request: BaseRequest) -> Response | None:
    """Returns the response to a request that Go's server rejects before any handler."""
    if request.version.major != 1:
        return text_response(505, "unsupported protocol version")
    if "%" in request.raw_path and _BROKEN_ESCAPE.search(request.raw_path.partition("?")[0]):
        return text_response(400)
    if request.headers.get("Expect", _CONTINUE).lower() != _CONTINUE:
        return text_response(417)
    return None


async def _pieces(request: BaseRequest) -> AsyncIterator[bytes]:
    await _send_continue(request)
    while piece := await request.content.readany():
        yield piece


async def _send_continue(request: BaseRequest) -> None:
    """Sends 100 Continue to a client that expects it before it sends the body."""
    if "Expect" in request.headers:
        assert isinstance(request.writer, StreamWriter)
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


async def _body(request: BaseRequest) -> bytes:
    await _send_continue(request)
    if request.content.is_eof():  # as most are: a time limit would cost more than the reading
        return await _read(request)
    async with asyncio.timeout(_BODY_SECONDS):
        return await _read(request)


async def _read(request: BaseRequest) -> bytes:
    try:
        return await request.read()
    except HTTPRequestEntityTooLarge:
        return _TOO_LARGE


def _timeout_response() -> Response:
    """Returns Kubernetes' response to a request whose body takes too long."""
    return _status_response(
        StatusError(504, "Timeout", "Timeout: request did not complete within the allotted timeout", details={})
    )


def _status_response(refusal: StatusError) -> Response:
    """Returns a Status that closes the connection."""
    response = Response(
        body=msgspec.json.encode(refusal.status()), status=refusal.code, content_type="application/json"
    )
    response.force_close()
    return response


async def _abort(transports: Sequence[asyncio.Transport | None]) -> None:
    """Aborts the connections, without waiting for TLS close messages."""
    for transport in transports:
        if transport is not None:
            transport.abort()
    for _ in range(_TURNS_TO_CLOSE):
        await SystemClock().sleep(0)


def _bounded_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> BaseRequest:
    return BaseRequest(message, payload, protocol, writer, task, task.get_loop(), client_max_size=LIMIT_BYTES)


def _api_request(request: BaseRequest, body: bytes) -> ApiRequest:
    path, _, query = _ABSOLUTE.sub("", _valid_text(request.raw_path)).partition("?")
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
    """Caches short queries, since many requests repeat them."""
    return _parameters(text)


def _parameters(text: str) -> Mapping[str, Sequence[str]]:
    """Parses a query as Go does: skips malformed pairs.

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
        lower, text = name.lower(), _valid_text(value)
        if lower in headers:
            repeated.setdefault(lower, [headers[lower]]).append(text)
        else:
            headers[lower] = text
    return headers | {name: "\n".join(values) for name, values in repeated.items()} if repeated else headers


def _valid_text(received: str) -> str:
    r"""Replaces bytes that are not UTF-8 by U+FFFD, as Go does.

    >>> _valid_text("J\udcfcrgen") == "J\ufffdrgen"
    True
    """
    return received if received.isascii() else received.encode(errors="surrogateescape").decode(errors="replace")


def _certificate(request: BaseRequest) -> bytes | None:
    """Returns the client's certificate, which TLS has verified, if there is one."""
    secured = request.get_extra_info("ssl_object")
    return secured.getpeercert(binary_form=True) if secured is not None else None
