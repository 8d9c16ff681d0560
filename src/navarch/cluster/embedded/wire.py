"""Below requests: sockets that notice who is gone, and answers to what is no request, in the words of Go's server."""

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

__all__ = ["BACKLOG", "HEAD_SECONDS", "LONGEST_HEAD", "Connection", "Heads", "listening", "plain_answer"]

BACKLOG: Final = 1024
LONGEST_HEAD: Final = 2**20
"""Bytes of the request line and all headers together, as Go has it."""
HEAD_SECONDS: Final = 10.0
"""What a TLS handshake, and then the head of a request, may take."""
MOST_WAITING: Final = 256
_MOST_PER_BYTE: Final = 8
"""A chunk of one byte has five others around it."""
_REFUSAL_SECONDS: Final = 0.5
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"431 Request Header Fields Too Large"
)
_PROBES: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""Whoever is gone without a word is noticed: by asking after so many seconds of silence, and after so many milliseconds in
which nothing that was sent has arrived.
"""


def listening(host: str, port: int) -> socket.socket:
    """A socket whose connections are all watched for peers that are gone: they inherit what it is set to."""
    opened = socket.create_server((host, port), backlog=BACKLOG)
    for name, value in _PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


def plain_answer(status: int, why: str = "") -> Response:
    """A line of text, after which the connection is closed."""
    line = f"{status} {HTTPStatus(status).phrase}"
    response = Response(text=f"{line}: {why}" if why else line, status=status)
    response.force_close()
    return response


class Heads:
    """Connections of which no request has come yet, or only a part of its head, the longest waiting first.

    Whoever means it sends a head at once. Of more than `MOST_WAITING` the oldest is closed, so that those who send none
    take the places of each other and of nobody else; and if the machine has few files left, a connection that idles.
    """

    def __init__(self) -> None:
        self._waiting: dict[Connection, None] = {}
        self._most_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2

    def begin(self, connection: Connection) -> None:
        """A head is awaited."""
        self._waiting[connection] = None
        if len(self._waiting) > MOST_WAITING:
            next(iter(self._waiting)).give_up()

    def end(self, connection: Connection) -> None:
        """The head has come, or the connection is closed; may be called twice."""
        self._waiting.pop(connection, None)

    def make_room(self, connections: Sequence[RequestHandler]) -> None:
        """Closes the oldest connection that idles, if too many are open."""
        if len(connections) > self._most_open:
            idle = (each for each in connections if isinstance(each, Connection) and each.is_idle)
            for each in islice(idle, 1):
                each.give_up()


class Connection(RequestHandler):
    """A connection on which what is no request gets a short answer, and is nothing to be logged; nor is who leaves.

    aiohttp bounds a header but not a head: here the head is bounded in bytes and time, and so is what is in a body of
    chunks beside its data (sizes, extensions, trailers).
    """

    __slots__ = ("_body", "_body_bytes", "_head_bytes", "_head_timer", "_heads", "_is_refused")

    def __init__(self, manager: Server, heads: Heads, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(manager, loop=loop, **options)
        self._heads = heads
        self._body: StreamReader = EMPTY_PAYLOAD
        self._body_bytes = 0
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request."""
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
        """See asyncio. Bytes belong to a head unless a body is being read; nothing is kept of what is refused."""
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
        """Answers as Go does, and gives the client a moment to read that: what it still sends would break it off."""
        self._is_refused = True
        self._end_head()
        if self.transport is not None and self.is_idle:
            self.transport.write(_TOO_LARGE)
            self._head_timer = self._loop.call_later(_REFUSAL_SECONDS, self.give_up)
        else:
            self.give_up()

    def give_up(self) -> None:
        """Closes the connection without a word, as Go does with those who take too long."""
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
        """The answer; a fault of this server is aiohttp's to tell. Whoever is gone gets none."""
        if isinstance(exc, ConnectionError):
            raise exc
        if status != 400 or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        return plain_answer(431 if isinstance(exc, LineTooLong) else 400)
