"""One watch on etcd for all who watch: etcd is asked once, and everything is decoded once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final

from navarch.cluster.storage.etcd_watch import Told
from navarch.cluster.storage.protocol import CompactedError, Event, StorageError, Watcher

_KEPT: Final = 4096
_MOST_WAITING: Final = 20_000

OpenWatch = Callable[[str, int], AbstractAsyncContextManager[Watcher]]
"""A watch of etcd: of what is under a prefix, after a revision."""


class EtcdFeed:
    """Everything under `prefix` after the revision `oldest`, while `run` runs. The last writes are kept, for those who
    begin to watch a little in the past.
    """

    def __init__(self, open_watch: OpenWatch, prefix: str, after: int) -> None:
        self._open_watch = open_watch
        self._prefix = prefix
        self.oldest = after
        self._heard = after
        self._events: deque[Event] = deque()
        self._watches: set[_Part] = set()
        self._failure: StorageError | None = None

    def serves(self, prefix: str, after: int) -> bool:
        """Whether it has all that such a watch would show."""
        return self._failure is None and after >= self.oldest and prefix.startswith(self._prefix)

    @property
    def has_failed(self) -> bool:
        """Whether another one is needed."""
        return self._failure is not None

    async def run(self) -> None:
        """Hands on what happens; returns when etcd says no more, and everybody who watches is told why."""
        try:
            async with self._open_watch(self._prefix, self.oldest) as watcher:
                while True:
                    await watcher.wait()
                    self._take(watcher.ready(), watcher.seen)
        except StorageError as error:
            self._fail(error)
        finally:
            self._fail(StorageError("the store was closed"))

    @contextmanager
    def watch(self, prefix: str, after: int) -> Iterator[Watcher]:
        """See `Storage.watch`; only what it `serves`."""
        part = _Part(prefix, after)
        part.tell(self._events, self._heard)
        self._watches.add(part)
        try:
            yield part
        finally:
            self._watches.discard(part)

    def _take(self, events: Sequence[Event], heard: int) -> None:
        self._heard = max(self._heard, heard)
        self._events.extend(events)
        while len(self._events) > _KEPT:
            self.oldest = self._events.popleft().revision
        for part in self._watches:
            part.tell(events, self._heard)

    def _fail(self, error: StorageError) -> None:
        self._failure = self._failure or error
        for part in self._watches:
            part.fail(self._failure)


class _Part(Told):
    """What is under a prefix, after a revision. Whoever does not come to take it is given up in the end."""

    def __init__(self, prefix: str, after: int) -> None:
        super().__init__(after)
        self._prefix = prefix
        self._after = after

    def tell(self, events: Iterable[Event], heard: int) -> None:
        """See `Told.tell`: of these, what belongs to it."""
        own = [event for event in events if event.revision > self._after and event.key.startswith(self._prefix)]
        super().tell(own, heard)
        if len(self._events) > _MOST_WAITING:
            self._events = []
            self.fail(CompactedError(heard))
