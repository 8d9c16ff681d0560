"""One resumable stream of changes."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Literal, Self, TypeVar

import msgspec

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.tasks import AsyncCloseable
from navarch.api import decode
from navarch.client.call import ApiCaller, may_pass
from navarch.client.list_body import HeadOnly, ObjectHead
from navarch.client.response_errors import StatusBody, error_from_status
from navarch.client.target import Readable, accept
from navarch.client.transport import Request, Response
from navarch.errors import (
    ApiError,
    BadAnswerError,
    ConnectionLostError,
    DecodeError,
    InvalidValueError,
    TransportError,
)

K = TypeVar("K")
WatchEventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

_log = logging.getLogger("navarch.client")
_BACKOFF = Backoff(initial=0.1, maximum=30.0, jitter=0.5)
_GRACE_SECONDS = 10.0
_AT_ONCE_SECONDS = 0.5
_INITIAL_SECONDS = 3600
# A server that wants quiet for longer may be back sooner, and a watch that sleeps would not know.
_LONGEST_PAUSE = 60.0
_NEVER = float("-inf")
_INITIAL_END = "k8s.io/initial-events-end"


class WatchEvent(Generic[K]):
    """A change of one object (`type`), and the object after it (for DELETED: just before).

    The object is decoded on first access: one that does not fit its model fails there, and the watch continues.
    """

    __slots__ = ("_data", "_kind", "_object", "head", "type")

    def __init__(self, type: WatchEventType, kind: Readable[K], data: bytes, head: ObjectHead) -> None:  # noqa: A002 - the API's word
        self.type: WatchEventType = type
        self.head = head
        """The object's metadata, as far as it is needed to tell which object it is."""
        self._kind = kind
        self._data = data
        self._object: K | None = None

    @property
    def data(self) -> bytes:
        """The object's JSON."""
        return self._data

    @property
    def object(self) -> K:
        """The decoded object. Raises `DecodeError` if it does not fit its model."""
        if self._object is None:
            self._object = self._kind.from_json(self._data)
        return self._object

    def __repr__(self) -> str:
        return f"WatchEvent({self.type!r}, {len(self._data)} bytes)"


class _WatchLine(msgspec.Struct, gc=False):
    type: WatchEventType | Literal["ERROR"]
    object: HeadOnly


class _WatchEnvelope(msgspec.Struct):
    object: msgspec.Raw


class _Annotated(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _Annotated


_AROUND = re.compile(rb'\{"type":"[A-Z]+","object":')


def _object_in(line: bytes) -> bytes:
    """Returns the object of a line; cuts it out without decoding if the line has Kubernetes' layout."""
    around = _AROUND.match(line)
    if around is not None and line.endswith(b"}}"):
        return line[around.end() : -1]
    return bytes(decode(_WatchEnvelope, line).object)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """`bookmarks` delivers bookmarks; `initial` begins with an ADDED event for every existing object.

    `timeout_seconds` is how long the server keeps one connection: a new one then continues where it ended, so a dead
    connection is noticed at most ten seconds later.
    """

    bookmarks: bool = False
    initial: bool = False
    timeout_seconds: int = 30

    def __post_init__(self) -> None:
        if self.timeout_seconds < 1:
            raise InvalidValueError(f"expected timeout_seconds of a watch to be 1 or more, got {self.timeout_seconds}")


class BodyLines:
    """The lines of a response's body as they arrive. A line may span any number of chunks."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._chunks = response.chunks()
        self._ready: deque[bytes] = deque()
        self._begun: list[bytes] = []

    async def next(self) -> bytes | None:
        """Returns the next line without its end; None when the stream has ended.

        Raises `ConnectionLostError` if it ended in the middle of a line.
        """
        while not self._ready:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                self._check_complete()
                return None
            self._take(chunk)
        return self._ready.popleft()

    async def close(self) -> None:
        """Closes the connection."""
        await self._response.close()

    def _take(self, chunk: bytes) -> None:
        """Joins the parts of an unfinished line once, when it ends: a line of 10 MB costs no more per byte than a short
        one.
        """
        first, *rest = chunk.split(b"\n")
        self._begun.append(first)
        for part in rest:
            self._ready.append(b"".join(self._begun))
            self._begun = [part]

    def _check_complete(self) -> None:
        if any(self._begun):
            raise ConnectionLostError("expected the end of a line, got the end of the stream")


class Watch(AsyncCloseable, Generic[K]):
    """Delivers changes since one resourceVersion, in order, each exactly once, over any number of connections.

    Use it as `async with client.watch(Pod) as changes: async for change in changes`. Retries lost connections and busy
    servers. Only an error ends it: `Gone` if the resourceVersion has expired (list again), `Forbidden`, `NotFound` and
    the like, `ConnectError` if the first connection cannot be opened within the client's time limit, and any
    interruption of the initial events: those cannot be resumed.
    """

    def __init__(
        self, caller: ApiCaller, kind: Readable[K], request: Request, what: str, options: WatchOptions
    ) -> None:
        self._caller = caller
        self._kind = kind
        self._request = request
        self._what = what
        self._options = options
        self._delays = BackoffDelays(_BACKOFF, caller.rng)
        self._lines: BodyLines | None = None
        self._in_initial = options.initial
        self._delivered = False
        self._opened_at = _NEVER
        self.alive_at = _NEVER
        """When, by the client's clock, the server was last heard of: a connection, an event or a bookmark."""
        self.resource_version = str(request.query.get("resourceVersion", ""))
        """The revision up to which everything has been seen; a new watch can begin here."""

    @property
    def in_initial(self) -> bool:
        """True while the initial events are still coming."""
        return self._in_initial

    async def __aenter__(self) -> Self:
        """Starts the watch: no later change is missed."""
        self._lines = await self._connected()
        return self

    async def close(self) -> None:
        """Closes the connection."""
        lines, self._lines = self._lines, None
        if lines is not None:
            await lines.close()

    def __aiter__(self) -> AsyncIterator[WatchEvent[K]]:
        return self

    async def __anext__(self) -> WatchEvent[K]:
        while True:
            line = await self._next_line()
            found = self._decoded(line)
            if found.type == "ERROR":
                await self._recover_from(error_from_status(self._what, decode(StatusBody, _object_in(line))))
                continue
            self._delays.reset()
            was_initial = self._in_initial
            event = self._event(found.type, found.object.metadata, _object_in(line))
            if was_initial and not self._in_initial:
                await self.close()  # it was opened for as long as a list may take; the next one ends in time
            if event is not None:
                return event

    async def _next_line(self) -> bytes:
        """Returns the next line from this connection or the one after it."""
        while True:
            lines = self._lines = self._lines or await self._connected()
            try:
                line = await lines.next()
            except TransportError as error:
                await self._recover_from(error)
                continue
            if line is not None:
                self.alive_at = self._caller.clock.liveness.monotonic()
                return line
            await self._after_the_end()

    async def _after_the_end(self) -> None:
        """Handles the end of a connection. The server ends each at its time; one that ends at once would do so for
        ever.
        """
        await self.close()
        if self._in_initial or self._caller.clock.liveness.monotonic() - self._opened_at < _AT_ONCE_SECONDS:
            await self._recover_from(ConnectionLostError(f"{self._what}: the stream ended before its time"))

    async def _connected(self) -> BodyLines:
        """Returns a connection. The first one must open within the client's limits; later ones are retried."""
        while True:
            try:
                lines = BodyLines(await self._open())
            except (TransportError, ApiError) as error:
                if self._opened_at == _NEVER:
                    raise
                await self._recover_from(error)
            else:
                self._opened_at = self.alive_at = self._caller.clock.liveness.monotonic()
                return lines

    async def _open(self) -> Response:
        if not self.resource_version and not self._in_initial:
            self.resource_version = await self._present()
        seconds = self._options.timeout_seconds
        query = {
            **self._request.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_INITIAL_SECONDS if self._in_initial else seconds),
            "resourceVersion": self.resource_version,
        }
        if self._in_initial:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = replace(self._request, query=query, idle_timeout=seconds + _GRACE_SECONDS, long_lived=True)
        return await self._caller.open(request, self._what)

    async def _present(self) -> str:
        """Returns the current resourceVersion, from a list of one object."""
        query = {**self._request.query, "limit": "1"}
        answer = await self._caller.call(
            replace(self._request, query=query, headers=accept(self._kind, many=True)), self._what
        )
        found = answer.decoded(partial(decode, HeadOnly)).metadata.resource_version
        if not found:
            raise answer.bad("it has no resourceVersion")
        return found

    async def _recover_from(self, error: TransportError | ApiError) -> None:
        """Waits before the next connection; raises an error that waiting does not resolve."""
        await self.close()
        if (self._in_initial and self._delivered) or not may_pass(error):
            raise error
        asked = min(getattr(error, "retry_after", None) or 0.0, _LONGEST_PAUSE)
        delay = max(self._delays.next_delay(), asked)
        _log.warning("%s; the watch goes on in %.1f s", error, delay)
        await self._caller.clock.liveness.sleep(delay)

    def _decoded(self, line: bytes) -> _WatchLine:
        try:
            return decode(_WatchLine, line)
        except DecodeError as error:
            raise BadAnswerError(f"{self._what}: expected a watch event, got {len(line)} bytes ({error})") from error

    def _event(self, kind: WatchEventType, head: ObjectHead, data: bytes) -> WatchEvent[K] | None:
        """Returns the event; None for a bookmark that was not requested."""
        if kind == "BOOKMARK" and self._in_initial and _ends_initial(data):
            self._in_initial = False
        if not self._in_initial and head.resource_version:
            self.resource_version = head.resource_version
        self._delivered = True
        if kind == "BOOKMARK" and not self._options.bookmarks:
            return None
        return WatchEvent(kind, self._kind, data, head)


def _ends_initial(bookmark: bytes) -> bool:
    return _INITIAL_END in (decode(_Bookmark, bookmark).metadata.annotations or {})
