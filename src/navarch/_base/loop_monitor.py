"""Detects a blocked event loop from a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Protocol

# Waited on top of the limit: a process that was stopped as a whole finds, when it goes on, that time has passed, though
# its loop did not block.
_GRACE = 0.05


class LoopListener(Protocol):
    """Receives the events of a `LoopMonitor`."""

    def turned(self, lag: float) -> None:
        """Called on the loop each time it answers, with the seconds that it took."""
        ...

    def stuck(self, seconds: float) -> None:
        """Called on the thread, once per blockage, with the seconds since the loop was asked."""
        ...

    def freed(self, seconds: float) -> None:
        """Called on the thread after `stuck`, when the loop answers again, with the seconds that it was blocked."""
        ...


class LoopMonitor:
    """Asks the loop to answer, four times per `limit`, and reports an answer that takes longer than that.

    Uses real time, since a blocked loop cannot advance another clock. Serves one `run`.
    """

    def __init__(self, listener: LoopListener, *, limit: float) -> None:
        self._listener = listener
        self._limit = limit
        self._stopping = threading.Event()
        self._answered = threading.Event()

    async def run(self) -> None:
        """Monitors the running loop until cancelled; the thread has ended when this returns."""
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._ask_again_and_again, args=(loop,), name="navarch-pulse", daemon=True)
        thread.start()
        try:
            await loop.create_future()
        finally:
            self._stopping.set()
            self._answered.set()
            thread.join()

    def _ask_again_and_again(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._stopping.wait(self._limit / 4):
            self._answered.clear()
            if self._stopping.is_set():  # it may have been set just before `clear` undid its wake-up
                return
            self._ask(loop)

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        asked = time.monotonic()
        loop.call_soon_threadsafe(self._answer, asked)
        if self._answered.wait(self._limit) or self._answered.wait(_GRACE):
            return
        self._listener.stuck(time.monotonic() - asked)
        self._answered.wait()
        self._listener.freed(time.monotonic() - asked)

    def _answer(self, asked: float) -> None:
        self._answered.set()
        self._listener.turned(time.monotonic() - asked)
