"""`MemoryStorage`, and the in-memory keyspace that it shares with the file storage."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from navarch.cluster.storage.history import FIRST_REVISION, HistoryLimits, HistoryWatch, StorageHistory
from navarch.cluster.storage.protocol import ChangedError, Event, StorageError, StoragePage, Stored

_LAST_CHARACTER = "\U0010ffff"


class KeyspaceState:
    """The current value of each key, in key order, and past values as far back as the history goes."""

    def __init__(
        self, limits: HistoryLimits, *, items: Iterable[Stored] = (), revision: int = FIRST_REVISION, oldest: int = 0
    ) -> None:
        self.history = StorageHistory(limits, revision=revision, oldest=oldest)
        self._values = {item.key: item for item in items}
        self._keys = sorted(self._values)

    @property
    def revision(self) -> int:
        """The revision of the last write."""
        return self.history.revision

    def get(self, key: str) -> Stored | None:
        """Returns the current value of the key."""
        return self._values.get(key)

    def items(self) -> list[Stored]:
        """Returns the current values of all keys."""
        return list(self._values.values())

    def apply(self, key: str, value: bytes | None, revision: int) -> None:
        """Applies a write whose condition was checked; None deletes."""
        previous = self._values.get(key)
        if value is None:
            del self._values[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            self._values[key] = Stored(key, value, revision)
            if previous is None:
                insort(self._keys, key)
        self.history.append(Event(key, value, revision, previous))

    def compact(self, revision: int) -> None:
        """See `Storage.compact`."""
        if revision > self.revision:
            raise StorageError(f"expected a revision up to {self.revision}, got {revision}")
        self.history.compact(revision)

    def page(self, prefix: str, revision: int, limit: int, after: str) -> StoragePage:
        """See `Storage.page`."""
        if revision not in {0, self.revision}:
            return self._past_page(prefix, revision, limit, after)
        low, high = self._bounds(prefix, after)
        end = min(low + limit, high) if limit else high
        return StoragePage(list(map(self._values.__getitem__, self._keys[low:end])), self.revision, high - end)

    def _past_page(self, prefix: str, revision: int, limit: int, after: str) -> StoragePage:
        if revision > self.revision:
            raise StorageError(f"expected a revision up to {self.revision}, got {revision}")
        self.history.require(revision)
        before = self._had(prefix, revision, after)
        keys = self._past_keys(prefix, after, before)
        chosen = keys[:limit] if limit else keys
        return StoragePage([before.get(key) or self._values[key] for key in chosen], revision, len(keys) - len(chosen))

    def _had(self, prefix: str, revision: int, after: str) -> dict[str, Stored | None]:
        """Returns the values at that revision of the keys that have changed since."""
        return {
            event.key: event.previous
            for event in self.history.undoing(revision)
            if event.key > after and event.key.startswith(prefix)
        }

    def _past_keys(self, prefix: str, after: str, before: dict[str, Stored | None]) -> list[str]:
        low, high = self._bounds(prefix, after)
        keys = self._keys[low:high]
        if None in before.values():
            keys = [key for key in keys if before.get(key, key)]
        if gone := [key for key, stored in before.items() if stored and key not in self._values]:
            keys.extend(gone)
            keys.sort()
        return keys

    def _bounds(self, prefix: str, after: str) -> tuple[int, int]:
        low = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        high = bisect_left(self._keys, end) if (end := _end(prefix)) else len(self._keys)
        return min(low, high), high


class StateReader:
    """Implements the reads and watches of `Storage` on a `KeyspaceState`."""

    def __init__(self, state: KeyspaceState) -> None:
        self._state = state

    async def revision(self) -> int:
        """See `Storage.revision`."""
        return self._state.revision

    async def get(self, key: str) -> Stored | None:
        """See `Storage.get`."""
        return self._state.get(key)

    async def page(self, prefix: str, *, revision: int = 0, limit: int = 0, after: str = "") -> StoragePage:
        """See `Storage.page`."""
        return self._state.page(prefix, revision, limit, after)

    def watch(self, prefix: str, *, after: int) -> HistoryWatch:
        """See `Storage.watch`."""
        return HistoryWatch(self._state.history, prefix, after)

    def _require_usable(self) -> None:
        if self._state.history.failure:
            raise StorageError(self._state.history.failure)


def require_revision(current: Stored | None, expected: int, *, deleting: bool) -> None:
    """Raises `ChangedError` unless the key is at that revision; a key without a value cannot be deleted."""
    revision = current.revision if current else 0
    if revision != expected or (deleting and current is None):
        raise ChangedError(current)


def _end(prefix: str) -> str:
    """Returns the first string after all strings with that prefix; empty if there is none."""
    prefix = prefix.rstrip(_LAST_CHARACTER)
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else ""


_USUAL_LIMITS = HistoryLimits()


class MemoryStorage(StateReader):
    """A `Storage` in memory. Belongs to one event loop, and never waits in a read or a write."""

    def __init__(self, limits: HistoryLimits = _USUAL_LIMITS) -> None:
        super().__init__(KeyspaceState(limits))

    async def put(self, key: str, value: bytes, *, expected: int) -> int:
        """See `Storage.put`."""
        return self._write(key, value, expected)

    async def delete(self, key: str, *, expected: int) -> int:
        """See `Storage.delete`."""
        return self._write(key, None, expected)

    async def compact(self, revision: int) -> None:
        """See `Storage.compact`."""
        self._state.compact(revision)

    @property
    def fault(self) -> str | None:
        """See `Storage.fault`."""
        return self._state.history.failure or None

    async def probe(self) -> None:
        """See `Storage.probe`."""
        self._require_usable()

    async def close(self) -> None:
        """See `Storage.close`. Watches end with a `StorageError`."""
        self._state.history.fail("the store was closed")

    def _write(self, key: str, value: bytes | None, expected: int) -> int:
        self._require_usable()
        require_revision(self._state.get(key), expected, deleting=value is None)
        revision = self._state.revision + 1
        self._state.apply(key, value, revision)
        return revision
