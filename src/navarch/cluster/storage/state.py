"""Keys, values and their past, in memory: what the stores of this process share."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from navarch.cluster.storage.history import FIRST_REVISION, History, HistoryLimits, Watch
from navarch.cluster.storage.protocol import ChangedError, Event, Page, StorageError, Stored

_LAST_CHARACTER = "\U0010ffff"


class State:
    """What each key has, in the order of keys, and what it had as far back as the history goes."""

    def __init__(
        self, limits: HistoryLimits, *, items: Iterable[Stored] = (), revision: int = FIRST_REVISION, oldest: int = 0
    ) -> None:
        self.history = History(limits, revision=revision, oldest=oldest)
        self._values = {item.key: item for item in items}
        self._keys = sorted(self._values)

    @property
    def revision(self) -> int:
        """The revision of the last write."""
        return self.history.revision

    def get(self, key: str) -> Stored | None:
        """What the key has now."""
        return self._values.get(key)

    def items(self) -> list[Stored]:
        """What all keys have now."""
        return list(self._values.values())

    def apply(self, key: str, value: bytes | None, revision: int) -> None:
        """Takes over a write that is known to be right; None deletes."""
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

    def page(self, prefix: str, revision: int, limit: int, after: str) -> Page:
        """See `Storage.page`."""
        if revision not in {0, self.revision}:
            return self._past_page(prefix, revision, limit, after)
        low, high = self._bounds(prefix, after)
        end = min(low + limit, high) if limit else high
        return Page(list(map(self._values.__getitem__, self._keys[low:end])), self.revision, high - end)

    def _past_page(self, prefix: str, revision: int, limit: int, after: str) -> Page:
        if revision > self.revision:
            raise StorageError(f"expected a revision up to {self.revision}, got {revision}")
        self.history.require(revision)
        before = self._had(prefix, revision, after)
        keys = self._past_keys(prefix, after, before)
        chosen = keys[:limit] if limit else keys
        return Page([before.get(key) or self._values[key] for key in chosen], revision, len(keys) - len(chosen))

    def _had(self, prefix: str, revision: int, after: str) -> dict[str, Stored | None]:
        """What the keys that have changed since that revision had then."""
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
    """The reading half of a `Storage` that has its state in this process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def revision(self) -> int:
        """See `Storage.revision`."""
        return self._state.revision

    async def get(self, key: str) -> Stored | None:
        """See `Storage.get`."""
        return self._state.get(key)

    async def page(self, prefix: str, *, revision: int = 0, limit: int = 0, after: str = "") -> Page:
        """See `Storage.page`."""
        return self._state.page(prefix, revision, limit, after)

    def watch(self, prefix: str, *, after: int) -> Watch:
        """See `Storage.watch`."""
        return Watch(self._state.history, prefix, after)

    def _require_usable(self) -> None:
        if self._state.history.failure:
            raise StorageError(self._state.history.failure)


def require_revision(current: Stored | None, expected: int, *, deleting: bool) -> None:
    """Raises `ChangedError` unless the key is at that revision; what has nothing cannot be deleted."""
    revision = current.revision if current else 0
    if revision != expected or (deleting and current is None):
        raise ChangedError(current)


def _end(prefix: str) -> str:
    """The first text that comes after everything with that prefix; empty if there is none."""
    prefix = prefix.rstrip(_LAST_CHARACTER)
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else ""
