"""`HttpConnection`: HTTP connections with keepalive, limits on heads and bodies, and Go's texts for malformed requests."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Sequence
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

BACKLOG: Final = 1024
LONGEST_HEAD: Final = 2**20
"""Bytes of the request line and all headers together, as Go has it."""
HEAD_SECONDS: Final = 10.0
"""The time limit of a TLS handshake, and then of the head of a request."""
MOST_WAITING: Final = 256
_MOST_PER_BYTE: Final = 8
"""A chunk of one byte has five others around it."""
_REFUSAL_SECONDS: Final = 0.5
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"431 Request Header Fields Too Large"
)
_PROBES: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""Detect peers that vanished: keepalive probes after so many idle seconds, and a limit in ms for unacknowledged data."""


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; its connections inherit the keepalive options."""
    opened = socket.create_server((host, port), backlog=BACKLOG)
    for name, value in _PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


def text_response(status: int, why: str = "") -> Response:
    """Returns a line of text that closes the connection."""
    line = f"{status} {HTTPStatus(status).phrase}"
    response = Response(text=f"{line}: {why}" if why else line, status=status)
    response.force_close()
    return response


class PendingHeads:
    """Connections that have not sent a complete request head yet, the oldest first.

    Beyond `MOST_WAITING` the oldest is closed, so that clients without a request evict only each other. If too many
    connections are open, an idle one is closed.
    """

    def __init__(self) -> None:
        self._waiting: dict[HttpConnection, None] = {}
        self._most_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2

    def begin(self, connection: HttpConnection) -> None:
        """Adds a connection; closes the oldest one if there are too many."""
        self._waiting[connection] = None
        if len(self._waiting) > MOST_WAITING:
            next(iter(self._waiting)).give_up()

    def end(self, connection: HttpConnection) -> None:
        """Removes a connection: its head is complete, or it is closed. May be called twice."""
        self._waiting.pop(connection, None)

    def make_room(self, connections: Sequence[RequestHandler]) -> None:
        """Closes the oldest idle connection if too many are open."""
        if len(connections) > self._most_open:
            idle = (each for each in connections if isinstance(each, HttpConnection) and each.is_idle)
            for each in islice(idle, 1):
                each.give_up()


class HttpConnection(RequestHandler):
    """A connection that answers malformed requests in one line, and logs neither these nor clients that disconnect.

    aiohttp bounds each header, but not the head. This class bounds the head in bytes and time, and also the overhead of a
    chunked body (sizes, extensions, trailers).
    """

    __slots__ = ("_body", "_body_bytes", "_head_bytes", "_head_timer", "_heads", "_is_refused")

    def __init__(
        self, manager: Server, heads: PendingHeads, *, loop: asyncio.AbstractEventLoop, **options: Any
    ) -> None:
        super().__init__(manager, loop=loop, **options)
        self._heads = heads
        self._body: StreamReader = EMPTY_PAYLOAD
        self._body_bytes = 0
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    @property
    def is_idle(self) -> bool:
        """True while it waits for a request."""
        return self._waiter is not None and not self._waiter.done()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        super().connection_made(transport)
        self._await_head()
        if self._manager is not None:
            self._heads.make_room(self._manager.connections)

    def connection_lost(self, exc: BaseException | None) -> None:
        """See asyncio."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio. Bytes belong to a head unless a body is being read; bytes after a refusal are dropped."""
        if self._is_refused:
            return
        in_body, requests = not self._body.is_eof(), self._request_count
        super().data_received(data)
        if self._request_count != requests:
            self._end_head()
            self._body, self._body_bytes = self._messages[-1][1] if self._messages else EMPTY_PAYLOAD, 0
        elif self._upgraded:
            self._end_head()
        elif in_body:
            self._body_bytes += len(data)
            if self._body_bytes > LONGEST_HEAD + _MOST_PER_BYTE * self._body.total_bytes:
                self.give_up()
        elif data:
            self._head_bytes += len(data)
            if self._head_timer is None:
                self._await_head()
            if self._head_bytes > LONGEST_HEAD:
                self._refuse_head()

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(HEAD_SECONDS, self.give_up)
        self._heads.begin(self)

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
            self._heads.end(self)

    def _refuse_head(self) -> None:
        """Answers 431 as Go does, and closes after a moment: a reset would discard the answer."""
        self._is_refused = True
        self._end_head()
        if self.transport is not None and self.is_idle:
            self.transport.write(_TOO_LARGE)
            self._head_timer = self._loop.call_later(_REFUSAL_SECONDS, self.give_up)
        else:
            self.give_up()

    def give_up(self) -> None:
        """Aborts the connection, as Go does after a timeout."""
        self._is_refused = True
        self._end_head()
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Returns a line of text for a malformed request; leaves faults of this server to aiohttp."""
        if isinstance(exc, ConnectionError):
            raise exc
        if status != 400 or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        return text_response(431 if isinstance(exc, LineTooLong) else 400)
