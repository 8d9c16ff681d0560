"""`Watchdog`: finds the code that blocks the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Final

from navarch._base.pulse import Pulse
from navarch.errors import InvalidValueError
from navarch.observe.logs import logger
from navarch.observe.metrics import LoopMetrics
from navarch.observe.source_lines import SourceLine, culprit

__all__ = ["Blockage", "Watchdog", "log_blockage"]

_log = logger("navarch.operator.watchdog")

_LOOP: Final = tuple(f"{os.sep}asyncio{os.sep}{name}.py" for name in ("events", "base_events", "runners"))


@dataclass(frozen=True, slots=True)
class Blockage:
    """The event loop was blocked for `seconds`; reported once while it lasts, and again when it is `over`."""

    task: str
    """The name of the task that ran; empty if it was a callback."""
    place: SourceLine
    """The innermost line of the user's own code; where there is none, the innermost line of all."""
    stack: tuple[SourceLine, ...]
    """Everything that ran inside the event loop, innermost first."""
    seconds: float
    over: bool

    def __str__(self) -> str:
        length = "blocked the event loop for" if self.over else "has been blocking the event loop for"
        return f"{self.task or 'a callback'} {length} {self.seconds:.1f} s in {self.place}"


def log_blockage(blockage: Blockage) -> None:
    """Logs a warning with the task, the function and the line."""
    log = _log.bind(
        task=blockage.task,
        function=blockage.place.function,
        place=f"{blockage.place.file}:{blockage.place.line}",
        seconds=round(blockage.seconds, 3),
    )
    if blockage.over:
        log.warning("the event loop turns again")
    else:
        log.warning(
            "the event loop is blocked: nothing else runs meanwhile; await instead, "
            "or make the reconciler a plain function, which runs in a thread",
            stack=list(map(str, blockage.stack)),
        )


class Watchdog:
    """Reports each time the loop has been blocked for about `limit` seconds, and again when it runs.

    `report` is called from a thread. `metrics`, if given, gets the latency of the loop.
    """

    def __init__(
        self,
        *,
        limit: float = 1.0,
        report: Callable[[Blockage], None] = log_blockage,
        metrics: LoopMetrics | None = None,
    ) -> None:
        if limit <= 0:
            raise InvalidValueError(f"expected a limit of more than 0 seconds for the watchdog, got {limit}")
        self._limit = limit
        self._report = report
        self._metrics = metrics

    async def run(self) -> None:
        """Watches the loop it runs on until cancelled; leaves no thread behind."""
        observer = _Observer(asyncio.get_running_loop(), self._report, self._metrics)
        await Pulse(observer, limit=self._limit).run()


class _Observer:
    """Samples the loop's thread while it is blocked."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, report: Callable[[Blockage], None], metrics: LoopMetrics | None
    ) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._report = report
        self._metrics = metrics
        self._found: Blockage | None = None

    def turned(self, lag: float) -> None:
        if self._metrics is not None:
            self._metrics.turned(lag)

    def stuck(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the documented way to see another thread
        stack = tuple(_inside_the_loop(frame))
        if stack:
            task = asyncio.current_task(self._loop)
            self._found = Blockage(
                task.get_name() if task else "", culprit(stack) or stack[0], stack, seconds, over=False
            )
            self._tell(self._found)

    def freed(self, seconds: float) -> None:
        found, self._found = self._found, None
        if found is not None:
            self._tell(replace(found, seconds=seconds, over=True))

    def _tell(self, blockage: Blockage) -> None:
        """A report that fails must not end the watch."""
        try:
            self._report(blockage)
        except Exception:  # noqa: BLE001 - any code may run in a report
            _log.exception("the report of a blocked event loop failed", blockage=blockage)


def _inside_the_loop(frame: FrameType | None) -> Iterator[SourceLine]:
    """Returns the frames that the loop has called, innermost first."""
    while frame is not None and not frame.f_code.co_filename.endswith(_LOOP):
        yield SourceLine(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
        frame = frame.f_back
