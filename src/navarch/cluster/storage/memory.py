"""A store in memory: nothing is left of it when the process ends."""

from __future__ import annotations

from navarch.cluster.storage.history import HistoryLimits, Watch
from navarch.cluster.storage.protocol import Page, StorageError, Stored
from navarch.cluster.storage.state import State, require_revision

__all__ = ["MemoryStorage"]

_USUAL_LIMITS = HistoryLimits()


class MemoryStorage:
    """A `Storage` in memory. Belongs to one event loop, and never waits in a read or a write."""

    def __init__(self, limits: HistoryLimits = _USUAL_LIMITS) -> None:
        self._state = State(limits)

    async def revision(self) -> int:
        """See `Storage.revision`."""
        return self._state.revision

    async def get(self, key: str) -> Stored | None:
        """See `Storage.get`."""
        return self._state.get(key)

    async def page(self, prefix: str, *, revision: int = 0, limit: int = 0, after: str = "") -> Page:
        """See `Storage.page`."""
        return self._state.page(prefix, revision, limit, after)

    async def put(self, key: str, value: bytes, *, expected: int) -> int:
        """See `Storage.put`."""
        return self._write(key, value, expected)

    async def delete(self, key: str, *, expected: int) -> int:
        """See `Storage.delete`."""
        return self._write(key, None, expected)

    def watch(self, prefix: str, *, after: int) -> Watch:
        """See `Storage.watch`."""
        return Watch(self._state.history, prefix, after)

    async def compact(self, revision: int) -> None:
        """See `Storage.compact`."""
        self._state.compact(revision)

    async def close(self) -> None:
        """See `Storage.close`. Watches end with a `StorageError`."""
        self._state.history.fail("the store was closed")

    def _write(self, key: str, value: bytes | None, expected: int) -> int:
        if self._state.history.failure:
            raise StorageError(self._state.history.failure)
        require_revision(self._state.get(key), expected, deleting=value is None)
        revision = self._state.revision + 1
        self._state.apply(key, value, revision)
        return revision
