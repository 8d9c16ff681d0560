"""`RepairLoop`: does some work after each change, and again after a failure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from navarch._base.backoff import Backoff, BackoffDelays
from navarch.client import Client
from navarch.errors import NavarchError
from navarch.observe.logs import logger

_log = logger("navarch.webhook")
_AGAIN = Backoff(initial=0.5, maximum=30.0)
_REPAIRS, _WITHIN_SECONDS = 5, 60.0
_PAUSE_SECONDS = 15.0


class RepairLoop:
    """Calls a function after each `trigger`. Triggers during a call lead to one more call.

    A failed call is logged with `what` it was for, and repeated with growing delays. After five repairs within a minute
    it pauses: somebody else wants something different, and the two would undo each other's writes without end.
    """

    def __init__(self, client: Client, what: str) -> None:
        self._client = client
        self._what = what
        self._triggered = asyncio.Event()
        self._repairs: deque[float] = deque(maxlen=_REPAIRS)

    def trigger(self, *_: object) -> None:
        """Requests a call; may be used as a subscriber."""
        self._triggered.set()

    def repaired(self, target: str) -> None:
        """Reports that the call undoes a change of somebody else."""
        self._repairs.append(self._client.clock.monotonic())
        _log.warning("writing what the operator declares: it was changed, or is missing", object=target)

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Calls the function until cancelled."""
        delays = BackoffDelays(_AGAIN, self._client.rng)
        while True:
            await self._triggered.wait()
            await self._pause()
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

    async def _pause(self) -> None:
        oldest = self._repairs[0] if len(self._repairs) == _REPAIRS else None
        if oldest is None or self._client.clock.monotonic() - oldest > _WITHIN_SECONDS:
            return
        _log.warning(
            f"cannot {self._what} for good: somebody else undid it {_REPAIRS} times within a minute; stop the other writer, "
            "such as another release of the operator that runs without leader election",
            again_in=f"{_PAUSE_SECONDS:g} s",
        )
        await self._client.clock.sleep(_PAUSE_SECONDS)
