"""A store in memory: nothing is left of it when the process ends."""

from __future__ import annotations

from navarch.cluster.storage.history import HistoryLimits
from navarch.cluster.storage.state import State, StateReader, require_revision

_USUAL_LIMITS = HistoryLimits()


class MemoryStorage(StateReader):
    """A `Storage` in memory. Belongs to one event loop, and never waits in a read or a write."""

    def __init__(self, limits: HistoryLimits = _USUAL_LIMITS) -> None:
        super().__init__(State(limits))

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
