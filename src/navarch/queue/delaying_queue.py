"""Holds keys that join the work queue at a given time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import msgspec

from navarch.queue.priority_queue import with_reason

K = TypeVar("K", bound=Hashable)

# The number of invalid entries that are kept before a rebuild is worth its cost.
_SLACK = 64


class DelayedItem(msgspec.Struct, Generic[K], eq=False):
    """One key and the time at which it is due."""

    key: K
    due: float
    priority: int
    reasons: tuple[str, ...]


class DelayingQueue(Generic[K]):
    """Orders keys by the time at which they are due. Each key has one time, the earliest that was requested."""

    def __init__(self) -> None:
        self._by_key: dict[K, DelayedItem[K]] = {}
        # A key that was dropped or became due earlier leaves an invalid entry behind: only `due` is valid.
        self._by_time: list[tuple[float, int, DelayedItem[K]]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, key: K, due: float, reason: str, priority: int) -> None:
        """Adds a key. If it is here already, the earlier time and the higher priority win, and both reasons are kept."""
        item = self._by_key.get(key)
        if item is None:
            self._by_key[key] = item = DelayedItem(key, due, priority, (reason,))
            self._push(item)
            return
        item.priority = max(item.priority, priority)
        item.reasons = with_reason(item.reasons, reason)
        if due < item.due:
            item.due = due
            self._push(item)

    def drop(self, key: K) -> None:
        """Removes the key, if it is here."""
        self._by_key.pop(key, None)

    def clear(self) -> None:
        self._by_key.clear()
        self._by_time.clear()

    def next_due(self) -> float | None:
        """Returns the time at which the first key is due; None if the queue is empty."""
        heap = self._by_time
        while heap and not self._is_valid(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: float) -> Iterator[DelayedItem[K]]:
        """Removes and yields the keys that are due, in the order of their times."""
        while (due := self.next_due()) is not None and due <= now:
            item = heapq.heappop(self._by_time)[2]
            del self._by_key[item.key]
            yield item

    def _push(self, item: DelayedItem[K]) -> None:
        if len(self._by_time) > 2 * len(self._by_key) + _SLACK:
            self._by_time = [entry for entry in self._by_time if self._is_valid(entry)]
            heapq.heapify(self._by_time)
        heapq.heappush(self._by_time, (item.due, next(self._order), item))

    def _is_valid(self, entry: tuple[float, int, DelayedItem[K]]) -> bool:
        due, _, item = entry
        return item.due == due and self._by_key.get(item.key) is item
