"""`ReviewConnection`: one connection of an API server, over which reviews are posted one after the other.

It serves what kube-apiserver sends and no more, so that a review costs little beside TLS. A time limit costs nothing but a
number: the listener looks after all connections once a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from http import HTTPStatus
from math import inf
from typing import Any, Protocol, cast

from navarch.webhook.http_request import CHUNKED, LONGEST_HEAD, ChunkedBody, RequestHead, parse_head
from navarch.webhook.router import WebhookAnswer, failure_answer, too_large
from navarch.webhook.verdict import ReviewError

HEAD_SECONDS = 10.0
BODY_SECONDS = 10.0
IDLE_SECONDS = 120.0
_WRITE_SECONDS = 10.0
_REFUSAL_SECONDS = 1.0
"""How long a refused client may take to read the answer: a connection that is closed at once may lose it."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ReviewSource(Protocol):
    """What a connection has of its listener."""

    is_closing: bool

    def opened(self, connection: ReviewConnection) -> None:
        """Adds a connection."""
        ...

    def lost(self, connection: ReviewConnection) -> None:
        """Removes a connection."""
        ...

    def largest_body(self, path: str) -> int:
        """Returns the largest body of a path. Raises `ReviewError` for an unknown one."""
        ...

    def answer(self, path: str, body: bytes) -> Awaitable[WebhookAnswer]:
        """Answers a body; never raises."""
        ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts a task."""
        ...


class ReviewConnection(asyncio.Protocol):
    """Reads requests and writes their answers, in order. `due` is when `expire` has to be called."""

    def __init__(self, source: ReviewSource, monotonic: Callable[[], float]) -> None:
        self._source = source
        self._monotonic = monotonic
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._head: RequestHead | None = None
        self._chunks: ChunkedBody | None = None
        self._is_answering = False
        self._is_refused = False
        self._is_writing_paused = False
        self.due = inf

    @property
    def is_idle(self) -> bool:
        """Returns whether it waits for a request of which nothing has arrived."""
        return not (self._unread or self._head or self._is_answering or self._is_refused)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self.due = self._monotonic() + IDLE_SECONDS
        self._source.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - see asyncio
        """See asyncio. A function that is running ends by itself: its time is limited."""
        self._transport = None
        self._unread.clear()
        self._source.lost(self)

    def pause_writing(self) -> None:
        """See asyncio: the client does not read. No further request is answered until it does."""
        self._is_writing_paused = True
        self.due = self._monotonic() + _WRITE_SECONDS

    def resume_writing(self) -> None:
        """See asyncio."""
        self._is_writing_paused = False
        self.due = self._monotonic() + IDLE_SECONDS
        self._advance()

    def data_received(self, data: bytes) -> None:
        """See asyncio. Requests that come before the answer to the last one wait for it."""
        if self._is_refused:
            return
        if not (self._unread or self._head):
            self.due = self._monotonic() + HEAD_SECONDS
        self._unread += data
        if not self._is_answering:
            self._advance()
        elif len(self._unread) > LONGEST_HEAD and self._transport is not None:
            self._transport.pause_reading()

    def _advance(self) -> None:
        """Answers the next request if it has arrived as a whole."""
        if self._is_answering or self._is_refused or self._is_writing_paused or self._transport is None:
            return
        try:
            body = self._body()
        except ReviewError as error:
            self._refuse(error)
            return
        if body is not None:
            assert self._head is not None
            self.due = inf
            self._is_answering = True
            self._source.start(self._answer(self._head, body))

    def _body(self) -> bytes | None:
        """Returns the body of the next request; None if there is more to come. Raises `ReviewError`."""
        if self._head is None:
            if not self._unread:
                return None
            self._head = self._next_head()
            if self._head is None:
                return None
            self.due = self._monotonic() + BODY_SECONDS
        if self._chunks is not None:
            return self._chunks.feed(self._unread)
        length = self._head.length
        if len(self._unread) < length:
            return None
        body = bytes(self._unread if len(self._unread) == length else self._unread[:length])
        del self._unread[:length]
        return body

    def _next_head(self) -> RequestHead | None:
        end = self._unread.find(b"\r\n\r\n", 0, LONGEST_HEAD)
        if end < 0:
            if len(self._unread) >= LONGEST_HEAD:
                raise ReviewError(431, f"expected a head of at most {LONGEST_HEAD} bytes, got more")
            return None
        head = parse_head(bytes(self._unread[: end + 2]))
        if head.method != "POST":
            raise ReviewError(405, f"expected POST, got {head.method[:20]}")
        largest = self._source.largest_body(head.path)
        if head.length > largest:
            raise too_large(head.path, largest)
        del self._unread[: end + 4]
        if head.length == CHUNKED:
            self._chunks = ChunkedBody(largest)
        if head.expects_continue and not self._unread and self._transport is not None:
            self._transport.write(_CONTINUE)
        return head

    async def _answer(self, head: RequestHead, body: bytes) -> None:
        answer = await self._source.answer(head.path, body)
        self._head = self._chunks = None
        self._is_answering = False
        if self._transport is None:
            return
        closes = not head.keeps_alive or self._source.is_closing
        self._write(answer, closes=closes)
        if closes:
            self._is_refused = True  # what the client still sends is not read
            self.due = self._monotonic() + _WRITE_SECONDS
            self._transport.close()
            return
        if not self._is_writing_paused:
            self.due = self._monotonic() + (HEAD_SECONDS if self._unread else IDLE_SECONDS)
        if self._unread:
            self._transport.resume_reading()
            self._advance()

    def _write(self, answer: WebhookAnswer, *, closes: bool) -> None:
        if self._transport is None:
            return
        self._transport.write(
            b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b"
            % (
                answer.status,
                b"OK" if answer.status == 200 else HTTPStatus(answer.status).phrase.encode(),
                len(answer.body),
                b"Connection: close\r\n" if closes else b"",
                answer.body,
            )
        )

    def _refuse(self, error: ReviewError) -> None:
        """Answers what cannot be read any further, and gives the client a moment to read the answer."""
        self._write(failure_answer(error), closes=True)
        self._is_refused = True
        self._unread.clear()
        self.due = self._monotonic() + _REFUSAL_SECONDS

    def expire(self) -> None:
        """Ends what takes too long: a request of which a part has arrived is answered with 408, all else is closed."""
        if self._is_refused or self._is_writing_paused or self.is_idle:
            self.abort()
        else:
            what = f"head within {HEAD_SECONDS:g} s" if self._head is None else f"review within {BODY_SECONDS:g} s"
            self._refuse(ReviewError(408, f"expected the whole {what}, got a part"))

    def finish(self) -> None:
        """Closes the connection, after the answer that is under way."""
        if not self._is_answering and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once."""
        if self._transport is not None:
            self._transport.abort()
