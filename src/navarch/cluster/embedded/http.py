"""HTTPS on loopback: requests from the network to the server, and its replies back."""

from __future__ import annotations

import asyncio
import gzip
import re
import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import unquote, unquote_plus

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler
from multidict import CIMultiDict

from navarch._base.clock import SystemClock
from navarch.cluster.embedded.transport import warning_header
from navarch.cluster.server.bodies import LIMIT_BYTES
from navarch.cluster.server.request import ApiRequest, Reply, request_info
from navarch.cluster.server.server import ApiServer, RecordedStream

__all__ = ["HttpServer"]

_COMPRESSED_FROM: Final = 128 * 1024
_PATIENCE: Final = 60.0
"""Seconds that a reader of a stream may take for what the connection holds; then it counts as dead."""
_IDLE_SECONDS: Final = 90.0
_DRAIN_SECONDS: Final = 5.0
_TURNS_TO_CLOSE: Final = 5
_LONGEST_HEAD: Final = 2**20
_READING: Final = frozenset({"GET", "HEAD"})
_BROKEN_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_TOO_LARGE: Final = b" " * (LIMIT_BYTES + 1)
"""Stands for every body beyond the limit; the server says what is to be said about it."""


class HttpServer:
    """Serves `server` at a loopback address; use it as an `async with`. A `port` of 0 is any that is free.

    What is under way when it ends has a few seconds to be finished; streams end at once.
    """

    def __init__(self, server: ApiServer, context: ssl.SSLContext, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = server
        self._context = context
        self._host = host
        self._port = port
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._streaming: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        """Where it can be reached while it runs."""
        assert self._listener is not None, "the server must be running"
        return f"https://{self._host}:{self._listener.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._web = web.Server(
            self._answer,
            request_factory=_bounded_request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=_IDLE_SECONDS,
            max_line_size=_LONGEST_HEAD,
            max_field_size=_LONGEST_HEAD,
        )
        self._listener = await asyncio.get_running_loop().create_server(
            self._web, self._host, self._port, ssl=self._context, backlog=1024
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._listener is not None
        assert self._web is not None
        self._listener.close()
        for task in self._streaming:
            task.cancel()
        transports = [handler.transport for handler in self._web.connections]
        self._web.pre_shutdown()
        await self._web.shutdown(_DRAIN_SECONDS)
        await _aborted(transports)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            body = b"" if request.method in _READING else await request.read()
        except web.HTTPRequestEntityTooLarge:
            body = _TOO_LARGE
        asked = _asked(request, body)
        work = self._server.handle(asked)
        # A client that leaves cuts off what it reads, but nothing that is being written.
        reply = await (work if request.method in _READING else asyncio.shield(work))
        if reply.stream is not None:
            return await self._streamed(request, reply)
        return _whole(asked, reply)

    async def _streamed(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        """Chunk by chunk, as fast as the client reads; one that does not read for long is cut off."""
        assert isinstance(reply.stream, RecordedStream)
        task = asyncio.current_task()
        assert task is not None
        self._streaming.add(task)
        try:
            response = web.StreamResponse(status=reply.status, headers=_headers(reply))
            await response.prepare(request)
            async for chunk in reply.stream:
                await _written(request, response, chunk)
        finally:
            self._streaming.discard(task)
            await reply.stream.aclose()
        return response


async def _aborted(transports: Sequence[asyncio.Transport | None]) -> None:
    """Everything was said: nobody is waited for to say goodbye."""
    for transport in transports:
        if transport is not None:
            transport.abort()
    for _ in range(_TURNS_TO_CLOSE):
        await SystemClock().sleep(0)


async def _written(request: web.BaseRequest, response: web.StreamResponse, chunk: bytes) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            await response.write(chunk)
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
) -> web.BaseRequest:
    return web.BaseRequest(message, payload, protocol, writer, task, task.get_loop(), client_max_size=LIMIT_BYTES)


def _asked(request: web.BaseRequest, body: bytes) -> ApiRequest:
    path, _, query = request.raw_path.partition("?")
    return ApiRequest(
        method=request.method,
        path=unquote(path),
        query=_parameters(query) if query else {},
        headers=_lower_headers(request),
        body=body,
        certificate=_certificate(request),
    )


def _parameters(text: str) -> dict[str, list[str]]:
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


def _lower_headers(request: web.BaseRequest) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        lower = name.lower()
        headers[lower] = f"{headers[lower]}\n{value}" if lower in headers else value
    return headers


def _certificate(request: web.BaseRequest) -> bytes | None:
    """The client's, if it showed one: TLS has verified it."""
    secured = request.get_extra_info("ssl_object")
    return secured.getpeercert(binary_form=True) if secured is not None else None


def _whole(asked: ApiRequest, reply: Reply) -> web.Response:
    body, headers = reply.body, _headers(reply)
    if len(body) >= _COMPRESSED_FROM and _is_compressed(asked):
        body = gzip.compress(body, compresslevel=1)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(body=body, status=reply.status, headers=headers)


def _is_compressed(asked: ApiRequest) -> bool:
    """Kubernetes compresses what is long, but lists never: it begins to send them before it knows."""
    return "gzip" in asked.headers.get("accept-encoding", "") and request_info(asked).verb != "list"


def _headers(reply: Reply) -> CIMultiDict[str]:
    headers = CIMultiDict({"Cache-Control": "no-cache, private", "Content-Type": reply.content_type, **reply.headers})
    for text in reply.warnings:
        headers.add("Warning", warning_header(text))
    if reply.content_type.startswith("text/"):
        headers["X-Content-Type-Options"] = "nosniff"
    return headers
