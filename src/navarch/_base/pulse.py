"""Whether an event loop still turns, seen from a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Protocol

# Waited on top of the limit: a process that was stopped as a whole finds, when it goes on, that time has passed, though
# its loop did not block.
_GRACE = 0.05


class PulseListener(Protocol):
    """Who is told."""

    def turned(self, lag: float) -> None:
        """Called on the loop each time: it took so many seconds to answer."""
        ...

    def stuck(self, seconds: float) -> None:
        """Called on the thread, once per blockage: the loop has not turned for so long."""
        ...

    def freed(self, seconds: float) -> None:
        """Called on the thread after `stuck`: the loop turns again, after so long in all."""
        ...


class Pulse:
    """Asks the loop to answer, four times per `limit`, and tells when the answer takes longer than that.

    Goes by real time, since a loop that blocks can move no other. Serves one `run`.
    """

    def __init__(self, listener: PulseListener, *, limit: float) -> None:
        self._listener = listener
        self._limit = limit
        self._stopping = threading.Event()
        self._answered = threading.Event()

    async def run(self) -> None:
        """Watches the running loop until cancelled; the thread has ended when this returns."""
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
