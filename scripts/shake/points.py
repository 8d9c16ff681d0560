"""What comes late, and how each of these is delayed without loss when its caller is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import functools
import inspect
import signal
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

from shake.weather import Odds, Weather

__all__ = ["POINTS", "Point", "ShakeError", "faults_of"]

Method = Callable[..., Coroutine[Any, Any, Any]]
Pause = Callable[[str], Awaitable[None]]
"""Waits as long as the weather wants at this place."""


_DELAYED: Final[weakref.WeakSet[Method]] = weakref.WeakSet()


class ShakeError(Exception):
    """Something that is to be delayed is not there."""


class Point(NamedTuple):
    """A method that takes longer: `delayed` makes the method that takes its place."""

    module: str
    owner: str
    method: str
    odds: Odds
    delayed: Callable[[Method, Pause], Method]

    @property
    def name(self) -> str:
        """Where it is, in full."""
        return f"{self.module}.{self.owner}.{self.method}"

    def original(self, module: ModuleType) -> Method:
        """The method as it is; raises `ShakeError` if there is none, or none that waits."""
        found = vars(getattr(module, self.owner, object)).get(self.method)
        if not inspect.iscoroutinefunction(found):
            got = "nothing of that name" if found is None else repr(found)
            raise ShakeError(f"expected {self.name} to be a coroutine, got {got}; mend scripts/shake/points.py")
        return found

    def delay(self, module: ModuleType, weather: Weather) -> None:
        """Delays the method from now on, once; raises like `original`."""
        original = self.original(module)
        if original in _DELAYED:
            return

        async def pause(when: str) -> None:
            await asyncio.sleep(weather.delay(f"{when} {self.name}", self.odds))

        changed = functools.wraps(original)(self.delayed(original, pause))
        _DELAYED.add(changed)
        setattr(getattr(module, self.owner), self.method, changed)


def faults_of(points: tuple[Point, ...]) -> list[str]:
    """What is wrong with these points; imports their modules."""
    faults = []
    for point in points:
        try:
            point.original(import_module(point.module))
        except (ImportError, ShakeError) as error:
            faults.append(str(error))
    return faults


def _late_line(original: Method, pause: Pause) -> Method:
    """A line of a watch that was read but not handed over is the next one's: it is lost only with its connection."""
    kept: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    async def late(lines: Any) -> Any:
        if lines not in kept:
            kept[lines] = await original(lines)
        await pause("after")
        return kept.pop(lines)

    return late


def _late_call(original: Method, pause: Pause) -> Method:
    """The request is late, and so is the answer to it, which is data that nobody has to close."""

    async def late(*arguments: Any, **options: Any) -> Any:
        await pause("before")
        answer = await original(*arguments, **options)
        await pause("after")
        return answer

    return late


def _late_open(original: Method, pause: Pause) -> Method:
    """Only the request is late: somebody has to close the answer."""

    async def late(*arguments: Any, **options: Any) -> Any:
        await pause("before")
        return await original(*arguments, **options)

    return late


def _late_start(original: Method, pause: Pause) -> Method:
    """What runs although nobody waits for it any more is killed, as it would be without a delay."""

    async def late(*arguments: Any, **options: Any) -> Any:
        await pause("before")
        started = await original(*arguments, **options)
        try:
            await pause("after")
        except BaseException:
            await started.signal(signal.SIGKILL)
            raise
        return started

    return late


_EVENTS: Final = Odds(often=0.25, seconds=0.15, rarely=0.04)
_REQUESTS: Final = Odds(often=0.08, seconds=0.05, rarely=0.01)
_STARTS: Final = Odds(often=0.4, seconds=0.3, rarely=0.08)

POINTS: Final = (
    Point("navarch.client.lines", "Lines", "next", _EVENTS, _late_line),
    Point("navarch.client.call", "Caller", "call", _REQUESTS, _late_call),
    Point("navarch.client.call", "Caller", "open", _REQUESTS, _late_open),
    Point("navarch.cluster.nodes.warden.warden", "Warden", "start", _STARTS, _late_start),
    Point("navarch.cluster.nodes.warden.warden", "WardenContainer", "wait", _STARTS, _late_call),
)
