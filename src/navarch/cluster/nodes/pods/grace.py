"""How long something that is to end still has."""

from __future__ import annotations

import asyncio

from navarch._base.clock import Clock
from navarch._base.tasks import within

__all__ = ["Grace"]


class Grace:
    """A time that is running out, for all containers of a pod alike. It can be made shorter, never longer."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._deadline = clock.monotonic() + seconds
        self._shortened = asyncio.Event()

    @property
    def left(self) -> float:
        """Seconds that are left; 0 when it is over."""
        return max(self._deadline - self._clock.monotonic(), 0.0)

    def shorten(self, seconds: float) -> None:
        """At most so many seconds from now."""
        deadline = self._clock.monotonic() + seconds
        if deadline < self._deadline:
            self._deadline = deadline
            self._shortened.set()

    def at_least(self, seconds: float) -> Grace:
        """The same for one of them, but not less than so many seconds."""
        return self if self.left >= seconds else Grace(self._clock, seconds)

    async def passed(self) -> None:
        """Returns when it is over."""
        while self.left > 0:
            self._shortened.clear()
            try:
                await within(self._clock, self.left, self._told())
            except TimeoutError:
                continue

    async def _told(self) -> None:
        await self._shortened.wait()
