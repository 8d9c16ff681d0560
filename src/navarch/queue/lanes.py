"""In which order waiting keys are handed out."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from navarch.queue.work import Wanted

K = TypeVar("K", bound=Hashable)

# How many entries that mean nothing any more are kept before it is worth sorting them out.
_SLACK = 64


def _share_of(key: Hashable) -> Hashable:
    """Keys that share one turn: those of a namespace, or all if keys have none."""
    return getattr(key, "namespace", None)


class Lane(Generic[K]):
    """The waiting keys of one priority: namespaces take turns, the keys of a namespace come in their order.

    A key that leaves without its turn is only struck out: its entry stays where it is and is skipped. An entry counts if
    and only if its `lane` is this one.
    """

    __slots__ = ("_arrivals", "_lines", "_struck", "_turns", "priority", "waiting")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.waiting = 0
        self._struck = 0
        # Everybody in the order of arrival; the first entry counts.
        self._arrivals: deque[Wanted[K]] = deque()
        # The same by namespace. Each namespace that has a line is in `_turns` once, and no other is.
        self._lines: dict[Hashable, deque[Wanted[K]]] = {}
        self._turns: deque[Hashable] = deque()

    def put(self, wanted: Wanted[K]) -> None:
        """At the end of its namespace's line."""
        wanted.lane = self
        self.waiting += 1
        self._arrivals.append(wanted)
        share = _share_of(wanted.key)
        line = self._lines.get(share)
        if line is None:
            self._lines[share] = line = deque()
            self._turns.append(share)
        line.append(wanted)

    def take(self) -> Wanted[K]:
        """The first key of the namespace whose turn it is; IndexError if nobody waits."""
        while True:
            share = self._turns.popleft()
            line = self._lines[share]
            wanted = self._first_of(line)
            if line:
                self._turns.append(share)
            else:
                del self._lines[share]
            if wanted is not None:
                self._leave(wanted)
                return wanted

    def strike(self, wanted: Wanted[K]) -> None:
        """One that waits here leaves without its turn."""
        self._leave(wanted)
        self._struck += 1
        if self._struck > self.waiting + _SLACK:
            self._sort_out()

    def oldest(self) -> float:
        """Since when the first to arrive has waited; IndexError if nobody waits."""
        return self._arrivals[0].since

    def _first_of(self, line: deque[Wanted[K]]) -> Wanted[K] | None:
        while line:
            wanted = line.popleft()
            if wanted.lane is self:
                return wanted
        return None

    def _leave(self, wanted: Wanted[K]) -> None:
        wanted.lane = None
        self.waiting -= 1
        arrivals = self._arrivals
        while arrivals and arrivals[0].lane is not self:
            arrivals.popleft()

    def _sort_out(self) -> None:
        """Makes everything anew without the entries that no longer count; the turns go on where they were."""
        lines = {share: deque(one for one in self._lines[share] if one.lane is self) for share in self._turns}
        self._lines = {share: line for share, line in lines.items() if line}
        self._turns = deque(self._lines)
        self._arrivals = deque(one for one in self._arrivals if one.lane is self)
        self._struck = 0


class Lanes(Generic[K]):
    """All waiting keys, the higher priority first, but nobody is passed over for ever.

    A key's priority grows by one step for every `ageing` seconds that it waits. Once that reaches the highest priority
    of those who wait, its lane is served every second time.
    """

    def __init__(self, ageing: float) -> None:
        self._ageing = ageing
        self._lanes: dict[int, Lane[K]] = {}
        # The priorities of those who wait, lowest first.
        self._priorities: list[int] = []
        self._turn_of_the_aged = False

    def __bool__(self) -> bool:
        return bool(self._priorities)

    def put(self, wanted: Wanted[K]) -> None:
        """It waits in the lane of its priority."""
        lane = self._lanes.get(wanted.priority)
        if lane is None:
            lane = self._lanes[wanted.priority] = Lane(wanted.priority)
            insort(self._priorities, wanted.priority)
        lane.put(wanted)

    def take(self, now: float) -> Wanted[K]:
        """The one that is next; IndexError if nobody waits."""
        lane = self._lanes[self._priorities[-1]]
        if len(self._priorities) > 1:
            lane = self._next_lane(lane, now)
        wanted = lane.take()
        self._close_if_empty(lane)
        return wanted

    def strike(self, wanted: Wanted[K]) -> None:
        """One that waits leaves without its turn; nothing happens if it does not wait."""
        if (lane := wanted.lane) is not None:
            lane.strike(wanted)
            self._close_if_empty(lane)

    def clear(self) -> None:
        self._lanes.clear()
        self._priorities.clear()

    def _next_lane(self, highest: Lane[K], now: float) -> Lane[K]:
        self._turn_of_the_aged = not self._turn_of_the_aged
        if not self._turn_of_the_aged:
            return highest
        aged = max(
            (self._lanes[priority] for priority in self._priorities[:-1]), key=lambda lane: self._grown(lane, now)
        )
        return aged if self._grown(aged, now) >= highest.priority else highest

    def _grown(self, lane: Lane[K], now: float) -> float:
        return lane.priority + (now - lane.oldest()) / self._ageing

    def _close_if_empty(self, lane: Lane[K]) -> None:
        if not lane.waiting:
            del self._lanes[lane.priority]
            self._priorities.remove(lane.priority)
