"""What comes late, and how each of these is delayed without loss when its caller is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import functools
import inspect
import signal
import weakref
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

from shake.weather import Odds, Weather

__all__ = ["POINTS", "Point", "ShakeError", "faults_of", "late"]

Method = Callable[..., Any]
Draw = Callable[[str], float]
"""How late the next one is, before or after what it does."""

_CHANGED: Final[weakref.WeakSet[Method]] = weakref.WeakSet()
_AT_ONCE_SECONDS: Final = 0.001


class ShakeError(Exception):
    """Something that is to be delayed is not there."""


class Point(NamedTuple):
    """A method in whose place there is another: what `change` makes of it, of the weather and of its name."""

    module: str
    owner: str
    method: str
    change: Callable[[Method, Weather, str], Method]
    is_coroutine: bool = True

    @property
    def name(self) -> str:
        """Where it is, in full."""
        return f"{self.module}.{self.owner}.{self.method}"

    def original(self, module: ModuleType) -> Method:
        """The method as it is; raises `ShakeError` if there is none, or none that waits."""
        found: Method | None = vars(getattr(module, self.owner, object)).get(self.method)
        if found is None or inspect.iscoroutinefunction(found) != self.is_coroutine:
            wanted = "coroutine" if self.is_coroutine else "method"
            got = "nothing of that name" if found is None else repr(found)
            raise ShakeError(f"expected {self.name} to be a {wanted}, got {got}; mend scripts/shake/points.py")
        return found

    def apply(self, module: ModuleType, weather: Weather) -> None:
        """Changes the method, once; raises like `original`."""
        original = self.original(module)
        if original not in _CHANGED:
            changed = functools.wraps(original)(self.change(original, weather, self.name))
            _CHANGED.add(changed)
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


def late(odds: Odds, how: Callable[[Method, Draw], Method]) -> Callable[[Method, Weather, str], Method]:
    """A change to what waits, as a point has it."""

    def change(original: Method, weather: Weather, name: str) -> Method:
        return how(original, lambda when: weather.delay(f"{when} {name}", odds))

    return change


def _line(original: Method, draw: Draw) -> Method:
    """A line that had not to be waited for is as late as the one before it, and no later: lines do not queue up.

    One that was read but not handed over is the next one's: it is lost only with its connection.
    """
    kept: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    async def late_line(lines: Any) -> Any:
        if lines not in kept:
            loop = asyncio.get_running_loop()
            asked = loop.time()
            kept[lines] = await original(lines)
            seconds = draw("after")
            await _sleep(seconds if loop.time() - asked > _AT_ONCE_SECONDS else 0.0)
        return kept.pop(lines)

    return late_line


def _call(original: Method, draw: Draw) -> Method:
    """What is asked comes late, and so does the answer, which is data: nobody has to close it."""

    async def late_call(*arguments: Any, **options: Any) -> Any:
        await _sleep(draw("before"))
        answer = await original(*arguments, **options)
        await _sleep(draw("after"))
        return answer

    return late_call


def _open(original: Method, draw: Draw) -> Method:
    """Only what is asked comes late: somebody has to close the answer."""

    async def late_open(*arguments: Any, **options: Any) -> Any:
        await _sleep(draw("before"))
        return await original(*arguments, **options)

    return late_open


def _start(original: Method, draw: Draw) -> Method:
    """What runs although nobody waits for it any more is killed, as it would be without a delay."""

    async def late_start(*arguments: Any, **options: Any) -> Any:
        await _sleep(draw("before"))
        started = await original(*arguments, **options)
        try:
            await _sleep(draw("after"))
        except BaseException:
            await started.signal(signal.SIGKILL)
            raise
        return started

    return late_start


async def _sleep(seconds: float) -> None:
    """What is in time does not even give others a turn."""
    if seconds:
        await asyncio.sleep(seconds)


def _calm(original: Method, weather: Weather, _: str) -> Method:
    """A test that owns the time waits for nothing that takes any: it has no weather."""

    def made(*arguments: Any, **options: Any) -> None:
        weather.calm()
        original(*arguments, **options)

    return made


_EVENTS: Final = Odds(often=0.25, seconds=0.15, rarely=0.04)
_REQUESTS: Final = Odds(often=0.08, seconds=0.05, rarely=0.01)
_STARTS: Final = Odds(often=0.4, seconds=0.3, rarely=0.08)

POINTS: Final = (
    Point("navarch.client.watch", "BodyLines", "next", late(_EVENTS, _line)),
    Point("navarch.client.call", "ApiCaller", "call", late(_REQUESTS, _call)),
    Point("navarch.client.call", "ApiCaller", "open", late(_REQUESTS, _open)),
    Point("navarch.cluster.nodes.shim.runtime", "ShimRuntime", "start", late(_STARTS, _start)),
    Point("navarch.cluster.nodes.shim.runtime", "ShimContainer", "wait", late(_STARTS, _call)),
    Point("navarch._base.movable_clock", "MovableClock", "_move", _calm, is_coroutine=False),
    Point("navarch._base.clock", "ManualClock", "__init__", _calm, is_coroutine=False),
)
