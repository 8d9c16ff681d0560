"""`RepairLoop`: does some work after each change, and again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from navarch._base.backoff import Backoff, BackoffDelays
from navarch.client import Client
from navarch.errors import NavarchError
from navarch.observe.logs import logger

_log = logger("navarch.webhook")
_AGAIN = Backoff(initial=0.5, maximum=30.0)


class RepairLoop:
    """Calls a function after each `trigger`. Triggers during a call lead to one more call.

    A failed call is logged with `what` it was for, and repeated with growing delays.
    """

    def __init__(self, client: Client, what: str) -> None:
        self._client = client
        self._what = what
        self._triggered = asyncio.Event()

    def trigger(self, *_: object) -> None:
        """Requests a call; may be used as a subscriber."""
        self._triggered.set()

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Calls the function until cancelled."""
        delays = BackoffDelays(_AGAIN, self._client.rng)
        while True:
            await self._triggered.wait()
            self._triggered.clear()
            try:
                await work()
            except NavarchError as error:
                delay = delays.next_delay()
                _log.warning(f"cannot {self._what}", error=str(error), again_in=f"{delay:.1f} s")
                self._triggered.set()
                await self._client.clock.sleep(delay)
            else:
                delays.reset()
