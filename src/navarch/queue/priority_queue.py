"""Orders waiting keys: by priority, then fairly between namespaces."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Hashable
from functools import lru_cache
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)

# A log line with more reasons tells its reader nothing new.
_REASONS_KEPT = 8


def with_reason(reasons: tuple[str, ...], reason: str) -> tuple[str, ...]:
    """Returns the reasons with one more; each is there once, and only the first few are kept."""
    if reason in reasons or len(reasons) >= _REASONS_KEPT:
        return reasons
    return (*reasons, reason)


@lru_cache(maxsize=64)
def _alone(reason: str) -> tuple[str, ...]:
    """Returns one flowd tuple for all keys that have only this reason: when a controller starts, that is every key."""
    return (reason,)


class Work(msgspec.Struct, Generic[K], frozen=True):
    """A key that a worker got from the queue.

    `reasons` says why it is reconciled, `waited` how many seconds it waited, `attempt` how often it failed before, and
    `priority` is the highest with which it was added. `tokens` are those of the reasons that could still be retracted.
    """

    key: K
    reasons: tuple[str, ...]
    waited: float
    attempt: int
    priority: int
    tokens: tuple[Hashable, ...] = ()


class QueueItem(msgspec.Struct, Generic[K], eq=False):
    """A key from its first `add` until the work on it is done."""

    key: K
    priority: int
    # The time since which it waits; once a worker has it, the time at which the work began.
    since: float
    # The level in which it waits; None while it is held back, worked on, or removed.
    level: PriorityLevel[K] | None = None
    # The permanent reasons; the empty one counts, but is not shown.
    lasting: tuple[str, ...] = ()
    # The reasons that can be retracted, by token.
    tokens: dict[Hashable, str] | None = None

    def add_reason(self, reason: str, token: Hashable | None) -> None:
        """Adds a reason. Beyond a handful, a reason with a token becomes permanent: one reconcile too many is harmless."""
        if token is None:
            self.lasting = with_reason(self.lasting, reason) if self.lasting else _alone(reason)
        elif self.tokens is None:
            self.tokens = {token: reason}
        elif token in self.tokens or len(self.tokens) < _REASONS_KEPT:
            self.tokens[token] = reason
        else:
            self.lasting = with_reason(self.lasting, reason)

    def retract(self, token: Hashable) -> bool:
        """Removes the reason with that token. Returns True if a reason is left."""
        if self.tokens is not None:
            self.tokens.pop(token, None)
        return bool(self.lasting or self.tokens)

    def reasons(self) -> tuple[str, ...]:
        """Returns each reason once, the permanent ones first."""
        found = self.lasting
        for reason in (self.tokens or {}).values():
            found = with_reason(found, reason)
        return tuple(filter(None, found)) if "" in found else found


# The number of invalid entries that are kept before a rebuild is worth its cost.
_SLACK = 64


def _flow_of(key: Hashable) -> Hashable:
    """Returns the flow of a key, its namespace; keys without a namespace flow one flow."""
    return getattr(key, "namespace", None)


class PriorityLevel(Generic[K]):
    """The waiting keys of one priority. Namespaces take turns; the keys of one namespace are first in, first out.

    A key that is removed out of turn leaves its entry behind, which is skipped later. An entry is valid if and only if
    its `level` is this one.
    """

    __slots__ = ("_arrivals", "_lines", "_removed", "_turns", "priority", "waiting")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.waiting = 0
        self._removed = 0
        # All items in the order of arrival; the first entry is valid.
        self._arrivals: deque[QueueItem[K]] = deque()
        # The same items by namespace. Exactly the namespaces with a line are in `_turns`, each once.
        self._lines: dict[Hashable, deque[QueueItem[K]]] = {}
        self._turns: deque[Hashable] = deque()

    def put(self, item: QueueItem[K]) -> None:
        """Adds the item at the end of its namespace's line."""
        item.level = self
        self.waiting += 1
        self._arrivals.append(item)
        flow = _flow_of(item.key)
        line = self._lines.get(flow)
        if line is None:
            self._lines[flow] = line = deque()
            self._turns.append(flow)
        line.append(item)

    def take(self) -> QueueItem[K]:
        """Removes and returns the first item of the namespace whose turn it is. Raises IndexError if none waits."""
        while True:
            flow = self._turns.popleft()
            line = self._lines[flow]
            item = self._first_of(line)
            if line:
                self._turns.append(flow)
            else:
                del self._lines[flow]
            if item is not None:
                self._leave(item)
                return item

    def remove(self, item: QueueItem[K]) -> None:
        """Removes a waiting item out of turn."""
        self._leave(item)
        self._removed += 1
        if self._removed > self.waiting + _SLACK:
            self._compact()

    def oldest(self) -> float:
        """Returns the time since which the first item has waited. Raises IndexError if none waits."""
        return self._arrivals[0].since

    def _first_of(self, line: deque[QueueItem[K]]) -> QueueItem[K] | None:
        while line:
            item = line.popleft()
            if item.level is self:
                return item
        return None

    def _leave(self, item: QueueItem[K]) -> None:
        item.level = None
        self.waiting -= 1
        arrivals = self._arrivals
        while arrivals and arrivals[0].level is not self:
            arrivals.popleft()

    def _compact(self) -> None:
        """Rebuilds the lines without invalid entries; the order of the turns stays."""
        lines = {flow: deque(one for one in self._lines[flow] if one.level is self) for flow in self._turns}
        self._lines = {flow: line for flow, line in lines.items() if line}
        self._turns = deque(self._lines)
        self._arrivals = deque(one for one in self._arrivals if one.level is self)
        self._removed = 0


class PriorityQueue(Generic[K]):
    """All waiting keys, the highest priority first, without starvation.

    A key's priority grows by one step for every `ageing` seconds that it waits. Once it reaches the highest priority
    that waits, its level gets every second turn.
    """

    def __init__(self, ageing: float) -> None:
        self._ageing = ageing
        self._levels: dict[int, PriorityLevel[K]] = {}
        # The priorities of the levels that have waiting items, lowest first.
        self._priorities: list[int] = []
        self._aged_turn = False

    def __bool__(self) -> bool:
        return bool(self._priorities)

    def put(self, item: QueueItem[K]) -> None:
        """Adds the item to the level of its priority."""
        level = self._levels.get(item.priority)
        if level is None:
            level = self._levels[item.priority] = PriorityLevel(item.priority)
            insort(self._priorities, item.priority)
        level.put(item)

    def take(self, now: float) -> QueueItem[K]:
        """Removes and returns the next item. Raises IndexError if none waits."""
        level = self._levels[self._priorities[-1]]
        if len(self._priorities) > 1:
            level = self._next_level(level, now)
        item = level.take()
        self._close_if_empty(level)
        return item

    def remove(self, item: QueueItem[K]) -> None:
        """Removes an item out of turn, if it waits."""
        if (level := item.level) is not None:
            level.remove(item)
            self._close_if_empty(level)

    def clear(self) -> None:
        self._levels.clear()
        self._priorities.clear()

    def _next_level(self, highest: PriorityLevel[K], now: float) -> PriorityLevel[K]:
        self._aged_turn = not self._aged_turn
        if not self._aged_turn:
            return highest
        aged = max(
            (self._levels[priority] for priority in self._priorities[:-1]), key=lambda level: self._grown(level, now)
        )
        return aged if self._grown(aged, now) >= highest.priority else highest

    def _grown(self, level: PriorityLevel[K], now: float) -> float:
        return level.priority + (now - level.oldest()) / self._ageing

    def _close_if_empty(self, level: PriorityLevel[K]) -> None:
        if not level.waiting:
            del self._levels[level.priority]
            self._priorities.remove(level.priority)
