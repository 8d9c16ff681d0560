"""Keys that are to wait later, not yet."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import msgspec

from navarch.queue.work import with_reason

K = TypeVar("K", bound=Hashable)

# How many entries that mean nothing any more are kept before it is worth sorting them out.
_SLACK = 64


class Later(msgspec.Struct, Generic[K], eq=False):
    """One key that is due at some time."""

    key: K
    due: float
    priority: int
    reasons: tuple[str, ...]


class Delayed(Generic[K]):
    """Keys by the time at which they are due; each has one time, the earliest that was asked for."""

    def __init__(self) -> None:
        self._by_key: dict[K, Later[K]] = {}
        # A key that was dropped or became due earlier leaves its old entry behind: the one that holds is its `due`.
        self._by_time: list[tuple[float, int, Later[K]]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, key: K, due: float, reason: str, priority: int) -> None:
        """The earlier of two times and the higher of two priorities holds; both reasons are kept."""
        later = self._by_key.get(key)
        if later is None:
            self._by_key[key] = later = Later(key, due, priority, (reason,))
            self._push(later)
            return
        later.priority = max(later.priority, priority)
        later.reasons = with_reason(later.reasons, reason)
        if due < later.due:
            later.due = due
            self._push(later)

    def drop(self, key: K) -> None:
        """It is no longer to come; nothing happens if it was not to come anyway."""
        self._by_key.pop(key, None)

    def clear(self) -> None:
        self._by_key.clear()
        self._by_time.clear()

    def next_due(self) -> float | None:
        """When the first is due; None if nothing is to come."""
        heap = self._by_time
        while heap and not self._holds(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> Iterator[Later[K]]:
        """Those that are due, in the order of their times; they are no longer here."""
        while (due := self.next_due()) is not None and due <= now:
            later = heapq.heappop(self._by_time)[2]
            del self._by_key[later.key]
            yield later

    def _push(self, later: Later[K]) -> None:
        if len(self._by_time) > 2 * len(self._by_key) + _SLACK:
            self._by_time = [entry for entry in self._by_time if self._holds(entry)]
            heapq.heapify(self._by_time)
        heapq.heappush(self._by_time, (later.due, next(self._order), later))

    def _holds(self, entry: tuple[float, int, Later[K]]) -> bool:
        due, _, later = entry
        return later.due == due and self._by_key.get(later.key) is later
