"""Watches on etcd: `SharedEtcdWatch` serves many watchers from one watch, so that each event is decoded once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final

from navarch.cluster.storage.protocol import CompactedError, Event, StorageError, Stored, Watcher
from navarch.errors import EtcdCompactedError, NavarchError
from navarch.etcd import EtcdClient, EtcdEvent, KeyValue, WatchRequest, WatchResponse

_FULL = 1000


def encoded(key: str) -> bytes:
    """Returns the key as bytes."""
    return key.encode("utf-8", "surrogatepass")


def decoded(pair: KeyValue) -> Stored:
    """Returns etcd's pair as a value of the storage."""
    return Stored(pair.key.decode("utf-8", "surrogatepass"), pair.value, pair.mod_revision)


class BufferedWatcher:
    """A `Watcher` that buffers the events that `push` adds."""

    def __init__(self, after: int) -> None:
        self.seen = after
        self._heard = after
        self._events: list[Event] = []
        self._failure: StorageError | None = None
        self._is_woken = False
        self._hint = asyncio.Event()

    def ready(self) -> list[Event]:
        """See `Watcher.ready`."""
        events, self._events = self._events, []
        self.seen = self._heard
        if not events and self._failure:
            raise self._failure
        return events

    async def wait(self) -> None:
        """See `Watcher.wait`."""
        while not (self._is_woken or self._events or self._failure):
            self._hint.clear()
            await self._hint.wait()
        self._is_woken = False

    def wake(self) -> None:
        """See `Watcher.wake`."""
        self._is_woken = True
        self._hint.set()

    def push(self, events: Iterable[Event], heard: int) -> None:
        """Adds events; up to the revision `heard` there were no others."""
        self._events.extend(events)
        self._heard = max(self._heard, heard)
        if self._events:
            self._hint.set()

    def fail(self, error: StorageError) -> None:
        """Ends the watch with an error, which `ready` raises after the last event."""
        self._failure = self._failure or error
        self._hint.set()


class EtcdWatcher(BufferedWatcher):
    """Reads events from etcd while `run` runs, and buffers them until `ready` is called.

    With a full buffer it stops reading: the events wait in etcd, which does not slow down writers.
    """

    def __init__(self, client: EtcdClient, request: WatchRequest) -> None:
        super().__init__(request.start_revision - 1)
        self._client = client
        self._request = request
        self._room = asyncio.Event()

    async def run(self) -> None:
        """Returns when the watch has failed; `ready` raises the reason."""
        try:
            await self._read_all()
        except EtcdCompactedError as error:
            self.fail(CompactedError(error.revision))
        except NavarchError as error:
            self.fail(StorageError(str(error)))
        except StorageError as error:
            self.fail(error)
        except Exception as error:
            self.fail(StorageError(f"the watch failed: {error}"))
            raise

    def ready(self) -> list[Event]:
        """See `Watcher.ready`."""
        self._room.set()
        return super().ready()

    async def _read_all(self) -> None:
        async with self._client.watch(self._request) as answers:
            async for answer in answers:
                self.push(map(_event, answer.events), _reach(answer))
                while len(self._events) >= _FULL:
                    self._room.clear()
                    await self._room.wait()


def _reach(answer: WatchResponse) -> int:
    """Returns the revision up to which the watch is complete; etcd's own revision is ahead of a watch that catches up."""
    if answer.created:
        return 0
    return answer.events[-1].kv.mod_revision if answer.events else answer.header.revision


def _event(event: EtcdEvent) -> Event:
    """Raises `CompactedError` if the previous value was compacted."""
    pair, previous = event.kv, event.prev_kv
    is_deletion = event.type == "DELETE"
    if previous is None and (is_deletion or pair.create_revision != pair.mod_revision):
        raise CompactedError(pair.mod_revision)
    key, value, revision = decoded(pair)
    return Event(key, None if is_deletion else value, revision, decoded(previous) if previous else None)


_MOST_EVENTS: Final = 4096
_MOST_WAITING: Final = 20_000

OpenWatch = Callable[[str, int], AbstractAsyncContextManager[Watcher]]
"""Opens a watch of etcd: of a prefix, after a revision."""


class SharedEtcdWatch:
    """Watches `prefix` after the revision `oldest` while `run` runs, for any number of watchers.

    It keeps the last events, for watchers that start a little in the past.
    """

    def __init__(self, open_watch: OpenWatch, prefix: str, after: int) -> None:
        self._open_watch = open_watch
        self._prefix = prefix
        self.oldest = after
        self._heard = after
        self._events: deque[Event] = deque()
        self._watches: set[_FeedWatcher] = set()
        self._failure: StorageError | None = None

    def serves(self, prefix: str, after: int) -> bool:
        """Returns True if it has all events of such a watch."""
        return self._failure is None and after >= self.oldest and prefix.startswith(self._prefix)

    @property
    def has_failed(self) -> bool:
        """True if the watch of etcd has failed, so that a new one is needed."""
        return self._failure is not None

    async def run(self) -> None:
        """Passes events to the watchers; returns when the watch of etcd fails, after passing on the error."""
        try:
            async with self._open_watch(self._prefix, self.oldest) as watcher:
                while True:
                    await watcher.wait()
                    self._receive(watcher.ready(), watcher.seen)
        except StorageError as error:
            self._fail(error)
        finally:
            self._fail(StorageError("the store was closed"))

    @contextmanager
    def watch(self, prefix: str, after: int) -> Iterator[Watcher]:
        """See `Storage.watch`; call it only for a watch that it `serves`."""
        part = _FeedWatcher(prefix, after)
        part.push(self._events, self._heard)
        self._watches.add(part)
        try:
            yield part
        finally:
            self._watches.discard(part)

    def _receive(self, events: Sequence[Event], heard: int) -> None:
        self._heard = max(self._heard, heard)
        self._events.extend(events)
        while len(self._events) > _MOST_EVENTS:
            self.oldest = self._events.popleft().revision
        for part in self._watches:
            part.push(events, self._heard)

    def _fail(self, error: StorageError) -> None:
        self._failure = self._failure or error
        for part in self._watches:
            part.fail(self._failure)


class _FeedWatcher(BufferedWatcher):
    """Receives the events of one prefix after a revision; one that falls far behind ends with `CompactedError`."""

    def __init__(self, prefix: str, after: int) -> None:
        super().__init__(after)
        self._prefix = prefix
        self._after = after

    def push(self, events: Iterable[Event], heard: int) -> None:
        """Adds those of the events that are under the prefix."""
        own = [event for event in events if event.revision > self._after and event.key.startswith(self._prefix)]
        super().push(own, heard)
        if len(self._events) > _MOST_WAITING:
            self._events = []
            self.fail(CompactedError(heard))
