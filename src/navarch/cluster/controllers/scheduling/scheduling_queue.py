"""The scheduling queue: active pods by priority, pods in backoff, and unschedulable pods that wait for a change."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from typing import Final

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.cluster.controllers.pod_info import PodInfo

_FIRST_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 10.0
_STALE_SECONDS: Final = 300.0


class _WaitingPod:
    """One pod. It is in the heap if and only if `place` is its position there."""

    __slots__ = ("attempts", "not_before", "place", "pod", "since")

    def __init__(self, pod: PodInfo, since: float) -> None:
        self.pod = pod
        self.since = since
        self.attempts = 0
        self.not_before = 0.0
        self.place = 0


class WaitingPods:
    """Returns pods by priority, then by their time in the queue.

    A pod that no node took is `put_aside`: it comes again when something has changed, though not before a delay that
    doubles from one second to ten, unless a node has come; and after five minutes in any case.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, _WaitingPod] = {}
        self._ready: list[tuple[int, float, int, _WaitingPod]] = []
        self._later: list[tuple[float, int, _WaitingPod]] = []
        self._aside: dict[str, _WaitingPod] = {}
        self._places = itertools.count(1)
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._known)

    def put(self, pod: PodInfo) -> None:
        """The pod waits, in this version from now on; one that was put aside may fit now that it has changed."""
        waiting = self._known.get(pod.uid)
        if waiting is None:
            waiting = self._known[pod.uid] = _WaitingPod(pod, self._clock.monotonic())
            self._let_in(waiting)
            return
        old, waiting.pod = waiting.pod, pod
        if old.wishes != pod.wishes and self._aside.pop(pod.uid, None) is not None:
            self._let_in(waiting)

    def drop(self, uid: str) -> None:
        """The pod waits no more."""
        waiting = self._known.pop(uid, None)
        if waiting is not None:
            waiting.place = 0
            self._aside.pop(uid, None)

    def put_aside(self, pod: PodInfo) -> None:
        """No node took the pod that was handed out."""
        waiting = self._known.get(pod.uid)
        if waiting is None:
            return
        delay = min(_FIRST_SECONDS * 2**waiting.attempts, _MOST_SECONDS)
        waiting.attempts += 1
        waiting.not_before = self._clock.monotonic() + delay
        self._aside[pod.uid] = waiting
        self._later_at(self._clock.monotonic() + _STALE_SECONDS, waiting)

    def put_back(self, pod: PodInfo) -> None:
        """The pod that was handed out is to be tried again, whatever changes: something failed on the way."""
        self.put_aside(pod)
        if (waiting := self._aside.pop(pod.uid, None)) is not None:
            self._let_in(waiting)

    def something_changed(self) -> None:
        """Pods that were put aside may fit now."""
        aside, self._aside = self._aside, {}
        for waiting in aside.values():
            self._let_in(waiting)

    def node_changed(self) -> None:
        """Pods that were put aside may fit now, on that node: none of them waits for its delay to pass."""
        self.something_changed()
        now = self._clock.monotonic()
        for waiting in [each for each in self._known.values() if each.place and each.not_before > now]:
            waiting.not_before = now
            self._make_ready(waiting)

    async def next(self) -> PodInfo:
        """The next pod; waits until there is one. It is handed out once, and then belongs to the caller."""
        while True:
            self._news.clear()
            self._take_due()
            while self._ready:
                *_, place, waiting = heapq.heappop(self._ready)
                if waiting.place == place:
                    waiting.place = 0
                    return waiting.pod
            await self._until_due()

    def _let_in(self, waiting: _WaitingPod) -> None:
        if waiting.not_before > self._clock.monotonic():
            self._later_at(waiting.not_before, waiting)
        else:
            self._make_ready(waiting)

    def _make_ready(self, waiting: _WaitingPod) -> None:
        waiting.place = next(self._places)
        heapq.heappush(self._ready, (-waiting.pod.priority, waiting.since, waiting.place, waiting))
        self._news.set()

    def _later_at(self, due: float, waiting: _WaitingPod) -> None:
        waiting.place = next(self._places)
        heapq.heappush(self._later, (due, waiting.place, waiting))
        self._news.set()

    def _take_due(self) -> None:
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            _, place, waiting = heapq.heappop(self._later)
            if waiting.place == place:
                self._aside.pop(waiting.pod.uid, None)
                self._make_ready(waiting)

    async def _until_due(self) -> None:
        if not self._later:
            await self._news.wait()
            return
        with contextlib.suppress(TimeoutError):
            await within(self._clock, self._later[0][0] - self._clock.monotonic(), self._news.wait())
