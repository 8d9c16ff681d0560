"""Waiting for something that somebody else brings about."""

from __future__ import annotations

import asyncio
from collections import deque


class Waiters:
    """Those who wait, first come, first woken.

    To be woken is only a hint: look again at what was waited for, and wait again if it is not there. A hint is never
    lost: one that reaches a waiter which is cancelled in the same moment goes to the next.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Returns when woken. Cancellation leaves the line."""
        hint = asyncio.get_running_loop().create_future()
        self._waiting.append(hint)
        try:
            await hint
        except asyncio.CancelledError:
            if not hint.cancelled():
                self.wake_one()
            elif hint in self._waiting:  # it may have been passed over since
                self._waiting.remove(hint)
            raise

    def wake_one(self) -> None:
        """Wakes the one that has waited longest; nobody waits, nothing happens."""
        while self._waiting:
            hint = self._waiting.popleft()
            if not hint.done():
                hint.set_result(None)
                return

    def wake_all(self) -> None:
        """Wakes everybody who waits now."""
        while self._waiting:
            self.wake_one()
