"""`Watches`: serves the events of a resource to its watchers, as lines of JSON or framed protobuf."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from navarch._base.clock import Clock
from navarch.cluster.server.objects.registry import seen, seen_all
from navarch.cluster.server.objects.response_bodies import PROTOBUF, ResponseForm, empty_table, shaped
from navarch.cluster.server.objects.selectors import Selection
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.request import ApiRequest, Json
from navarch.cluster.server.wire.status_errors import StatusError, gone
from navarch.cluster.storage import CompactedError, Event, Storage, StorageError, Stored, Watcher

_KEPT_LINES = 4096
_KEPT_BYTES = 64 * 2**20
_BOOKMARK_SECONDS = 60.0
_BEFORE_END_SECONDS = 2.0
_TICK_SECONDS = 0.1
_TOGETHER = 64
_INITIAL_END = "k8s.io/initial-events-end"


class TableLook(NamedTuple):
    """What a line with a table depends on, besides the object: ages are in seconds, so it holds for one."""

    include: str
    has_columns: bool
    second: int


class WatchLines:
    """The lines that events become, each made once however many watch; the newest are kept."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, str, str, ResponseForm, TableLook | None], bytes] = OrderedDict()
        self._bytes = 0

    async def line(self, kind: str, stored: Stored, asked: WatchParameters, look: TableLook | None = None) -> bytes:
        """The line for an object at this version, in a form that is the same for all who ask for it."""
        key = (stored.revision, kind, asked.resource.api_version, asked.form, look)
        line = self._known.get(key)
        if line is None:
            data = asked.formed(await seen(asked.resource, stored))
            line = _event(kind, _without_columns(data) if look and not look.has_columns else data, asked.form)
            self._keep(key, line)
        return line

    def _keep(self, key: tuple[int, str, str, ResponseForm, TableLook | None], line: bytes) -> None:
        self._bytes += len(line) - len(self._known.get(key, b""))  # another watch may have been faster
        self._known[key] = line
        while len(self._known) > _KEPT_LINES or self._bytes > _KEPT_BYTES:
            self._bytes -= len(self._known.popitem(last=False)[1])


def _without_columns(table: bytes) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(table), "columnDefinitions": None})


def _line(kind: str, data: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), data)


def _event(kind: str, data: bytes, form: ResponseForm) -> bytes:
    """The event in the form that was asked for."""
    if form.media_type != PROTOBUF:
        return _line(kind, data)
    from navarch.cluster.server.wire.protobuf import framed_event  # noqa: PLC0415 - few ask for it

    return framed_event(kind, msgspec.json.decode(data))


class WatchParameters(msgspec.Struct, frozen=True):
    """What a watch was asked to be. `after` is the revision it begins at, None to begin with what is there."""

    resource: ResourceType
    namespace: str
    selection: Selection
    form: ResponseForm
    request: ApiRequest
    after: int | None
    bookmarks: bool
    marks_initial_end: bool
    seconds: float

    def formed(self, data: bytes) -> bytes:
        """An object in the form that was asked for, as JSON."""
        if not self.form.kind:
            return data
        return shaped(data, self.resource, replace(self.form, media_type="application/json"), self.request)


class Watches:
    """Every watch of a server; those that wait are woken when something is due: a bookmark, or their end.

    One ticker for all: a timer for each wait would cost more than the events.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self.storage = storage
        self.clock = clock.liveness
        self.lines = WatchLines()
        self._waiting: dict[Watcher, Callable[[], float]] = {}
        self._ends: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def run(self) -> None:
        """Ticks until it is cancelled."""
        while True:
            await self.clock.sleep(_TICK_SECONDS)
            now = self.clock.monotonic()
            for watcher in [each for each, due in self._waiting.items() if due() <= now]:
                watcher.wake()

    def end(self, storage_prefix: str) -> None:
        """Ends the watches of a resource that is served no more, or not as it was; they still tell what has happened."""
        self._ends[storage_prefix] = self.ends(storage_prefix) + 1
        for watcher in tuple(self._waiting):
            watcher.wake()

    def ends(self, storage_prefix: str) -> int:
        """How often the watches of that resource were ended."""
        return self._ends.get(storage_prefix, 0)

    async def lines_of(self, asked: WatchParameters) -> AsyncIterator[bytes]:
        """The lines of one watch until its time is up; what goes wrong on the way is a line too."""
        try:
            async for line in _WatchStream(self, asked).run():
                yield line
        except CompactedError as error:
            yield _error(gone(f"too old resource version: {asked.after} ({error.oldest})"), asked.form)
        except StatusError as refusal:
            yield _error(refusal, asked.form)
        except StorageError as error:
            yield _error(StatusError(500, "InternalError", f"the storage failed: {error}"), asked.form)

    @asynccontextmanager
    async def following(self, prefix: str, after: int, due: Callable[[], float]) -> AsyncIterator[Watcher]:
        """A watcher that the ticker wakes when something is due."""
        async with self.storage.watch(prefix, after=after) as watcher:
            self._waiting[watcher] = due
            try:
                yield watcher
            finally:
                del self._waiting[watcher]


def _error(refusal: StatusError, form: ResponseForm) -> bytes:
    return _event("ERROR", msgspec.json.encode(refusal.status()), form)


class _WatchStream:
    def __init__(self, watches: Watches, asked: WatchParameters) -> None:
        self._watches = watches
        self._asked = asked
        self._prefix = asked.resource.prefix(asked.namespace)
        self._seen = asked.after or 0
        self._clock = watches.clock
        self._ends = self._clock.monotonic() + asked.seconds
        self._ended_before = watches.ends(asked.resource.storage_prefix)
        self._bookmark_at = self._next_bookmark()
        self._has_columns = False

    async def run(self) -> AsyncIterator[bytes]:
        if self._asked.after is None:
            async for line in self._initial():
                yield line
        async with self._watches.following(self._prefix, self._seen, self._due) as watcher:
            async for lines in self._follow(watcher):
                yield lines

    async def _initial(self) -> AsyncIterator[bytes]:
        """What is there; few watch from the same moment on, so that these lines are not kept."""
        page = await self._watches.storage.page(self._prefix)
        self._seen = page.revision
        for start in range(0, len(page.items), _TOGETHER):
            found = [each for each in page.items[start : start + _TOGETHER] if await self._is_meant(each)]
            shown = await seen_all(self._asked.resource, found)
            yield b"".join([_event("ADDED", self._formed(data), self._asked.form) for data in shown])
        if self._asked.marks_initial_end:
            yield self._bookmark(initial_end=True)

    async def _follow(self, watcher: Watcher) -> AsyncIterator[bytes]:
        """What happened since the last look, as one chunk; bookmarks when they are due, and one before the end."""
        while (now := self._clock.monotonic()) < self._ends:
            if events := watcher.ready():
                self._seen = events[-1].revision
                if chunk := b"".join([await self._line(event) for event in events]):
                    yield chunk
            elif self._watches.ends(self._asked.resource.storage_prefix) != self._ended_before:
                return
            elif self._asked.bookmarks and now >= self._bookmark_at:
                self._bookmark_at = self._next_bookmark()
                self._seen = max(self._seen, watcher.seen)
                yield self._bookmark()
            else:
                await watcher.wait()

    def _due(self) -> float:
        """When it has something to do even if nothing happens."""
        return min(self._bookmark_at, self._ends) if self._asked.bookmarks else self._ends

    def _next_bookmark(self) -> float:
        """In a minute, or just before the end; after that never."""
        now, last = self._clock.monotonic(), self._ends - _BEFORE_END_SECONDS
        return min(now + _BOOKMARK_SECONDS, last) if now < last else self._ends

    async def _line(self, event: Event) -> bytes:
        """The line of an event as this watch sees it: an object that stops matching is gone, one that begins to is new."""
        before = event.previous is not None and await self._is_meant(event.previous)
        now = None if event.value is None else Stored(event.key, event.value, event.revision)
        if now is not None and await self._is_meant(now):
            return await self._shown("MODIFIED" if before else "ADDED", now)
        if before and event.previous is not None:
            return await self._shown("DELETED", Stored(event.key, event.previous.value, event.revision))
        return b""

    async def _is_meant(self, stored: Stored) -> bool:
        selection = self._asked.selection
        if not selection:
            return True
        return selection.matches((await selection.as_asked((stored,)))[0] if selection.is_of_version else stored.value)

    async def _shown(self, kind: str, stored: Stored) -> bytes:
        asked = self._asked
        look = None
        if asked.form.kind == "Table":
            include, second = asked.request.parameter("includeObject"), int(self._clock.monotonic())
            look = TableLook(include, has_columns=not self._has_columns, second=second)
            self._has_columns = True
        return await self._watches.lines.line(kind, stored, asked, look)

    def _formed(self, data: bytes) -> bytes:
        formed = self._asked.formed(data)
        return self._with_columns_once(formed) if self._asked.form.kind == "Table" else formed

    def _with_columns_once(self, table: bytes) -> bytes:
        """Only the first table of a watch says what its columns are."""
        has_columns, self._has_columns = self._has_columns, True
        return _without_columns(table) if has_columns else table

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        metadata: Json = {"resourceVersion": str(self._seen), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {_INITIAL_END: "true"}
        if self._asked.form.kind == "Table":
            table = msgspec.json.encode(empty_table(self._asked.resource, metadata))
            return _line("BOOKMARK", self._with_columns_once(table))
        resource, partial = self._asked.resource, self._asked.form.kind.startswith("Partial")
        kind = "PartialObjectMetadata" if partial else resource.kind
        version = f"meta.k8s.io/{self._asked.form.version}" if partial else resource.api_version
        data = msgspec.json.encode({"kind": kind, "apiVersion": version, "metadata": metadata})
        return _event("BOOKMARK", data, self._asked.form)
