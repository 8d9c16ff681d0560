"""`StorageHistory`: the last writes of a storage, and the watches on them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from types import TracebackType

import msgspec

from navarch.cluster.storage.protocol import CompactedError, Event, StorageError, Watcher

FIRST_REVISION = 1
"""The revision of a store that nobody has written to, as in etcd."""


class HistoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a history: writes, and bytes of their values; older writes are compacted."""

    revisions: int = 50_000
    size: int = 64 * 2**20

    def __post_init__(self) -> None:
        if self.revisions < 1 or self.size < 1:
            raise ValueError(f"expected limits of at least 1, got {self.revisions} revisions and {self.size} bytes")


class StorageHistory:
    """Events in the order of their revisions, without gaps; those up to `oldest` are gone.

    Each watch has a position in this one sequence: a write costs the same for any number of watches, except that it wakes
    those that wait for its key.
    """

    def __init__(self, limits: HistoryLimits, *, revision: int = FIRST_REVISION, oldest: int = 0) -> None:
        self.revision = revision
        self.oldest = oldest
        self._limits = limits
        self._events: deque[Event] = deque()
        self._size = 0
        self._waiting: dict[str, set[HistoryWatch]] = {}  # by the prefix's part up to its last slash
        self.failure = ""  # the reason after which no write is accepted

    def append(self, event: Event) -> None:
        """Appends a write; its revision is the next one."""
        self.revision = event.revision
        self._events.append(event)
        self._size += _size(event)
        while self._size > self._limits.size or len(self._events) > self._limits.revisions:
            self._drop_first()
        if self._waiting:
            self._wake(event.key, event.revision)

    def require(self, revision: int) -> None:
        """Raises `CompactedError` if what happened after that revision is no longer known."""
        if revision < self.oldest:
            raise CompactedError(self.oldest)

    def undoing(self, revision: int) -> Iterator[Event]:
        """Yields the writes after that revision, the last one first."""
        for event in reversed(self._events):
            if event.revision <= revision:
                return
            yield event

    def compact(self, revision: int) -> None:
        """Drops the events up to that revision."""
        while self._events and self._events[0].revision <= revision:
            self._drop_first()
        self.oldest = max(self.oldest, revision)

    def after(self, revision: int, prefix: str) -> list[Event]:
        """Returns the writes under `prefix` after that revision, in order. Raises `CompactedError`, `StorageError`."""
        if self.failure:
            raise StorageError(self.failure)
        self.require(revision)
        events = self._events
        last = len(events)
        first = max(last - (self.revision - revision), 0)
        return [event for index in range(first, last) if (event := events[index]).key.startswith(prefix)]

    def await_write(self, watch: HistoryWatch) -> None:
        """Wakes the watch at the next write under its prefix."""
        self._waiting.setdefault(_folder(watch.prefix), set()).add(watch)

    def stop_awaiting(self, watch: HistoryWatch) -> bool:
        """Returns True if the watch was still waiting."""
        folder = _folder(watch.prefix)
        waiting = self._waiting.get(folder)
        if waiting is None or watch not in waiting:
            return False
        waiting.remove(watch)
        if not waiting:
            del self._waiting[folder]
        return True

    def fail(self, reason: str) -> None:
        """Ends the history: watches raise a `StorageError` with this reason."""
        self.failure = self.failure or reason
        for watch in [watch for waiting in self._waiting.values() for watch in waiting]:
            watch.wake()

    def _drop_first(self) -> None:
        event = self._events.popleft()
        self._size -= _size(event)
        self.oldest = event.revision

    def _wake(self, key: str, revision: int) -> None:
        """Wakes the watches of all prefixes of the key; these are indexed by folder."""
        end = 0
        while True:
            if waiting := self._waiting.get(key[:end]):
                for watch in [watch for watch in waiting if key.startswith(watch.prefix)]:
                    self.stop_awaiting(watch)
                    watch.written(revision)
            end = key.find("/", end) + 1
            if not end:
                return


class HistoryWatch:
    """A `Watcher` of a history, and the `async with` that gives it.

    `seen` is the revision up to which every write under the prefix was handed out.
    """

    def __init__(self, history: StorageHistory, prefix: str, after: int) -> None:
        self.prefix = prefix
        self.seen = after
        self._history = history
        self._is_woken = False
        self._hint: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Watcher:
        self._history.require(self.seen)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._history.stop_awaiting(self)

    def ready(self) -> list[Event]:
        """See `Watcher.ready`."""
        events = self._history.after(self.seen, self.prefix)
        self.seen = max(self.seen, self._history.revision)
        return events

    async def wait(self) -> None:
        """See `Watcher.wait`."""
        if not self._is_woken and not self._has_news():
            await self._await_write()
        self._is_woken = False

    def wake(self) -> None:
        """See `Watcher.wake`."""
        self._is_woken = True
        if self._hint and not self._hint.done():
            self._hint.set_result(None)

    def written(self, revision: int) -> None:
        """Records the first write under the prefix since the watch waits."""
        self.seen = max(self.seen, revision - 1)
        self.wake()

    def _has_news(self) -> bool:
        history = self._history
        if history.failure or self.seen < history.oldest:
            return True
        return history.revision > self.seen and bool(history.after(self.seen, self.prefix))

    async def _await_write(self) -> None:
        """Waits for a write; a waiting watch does not fall behind writes of other prefixes."""
        self._history.await_write(self)
        self._hint = asyncio.get_running_loop().create_future()
        try:
            await self._hint
        finally:
            if self._history.stop_awaiting(self):
                self.seen = max(self.seen, self._history.revision)


def _folder(prefix: str) -> str:
    return prefix[: prefix.rfind("/") + 1]


def _size(event: Event) -> int:
    return len(event.value or b"") + (len(event.previous.value) if event.previous else 0)
