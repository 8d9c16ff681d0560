"""Work on many keys, each when its time has come."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from navarch._base.backoff import Backoff
from navarch._base.clock import Clock
from navarch.errors import NavarchError
from navarch.queue import QueueOptions, WorkQueue

__all__ = ["Rounds"]

K = TypeVar("K", bound=Hashable)

_log = logging.getLogger("navarch.nodes")
_PAUSE: Final = Backoff(initial=0.2, maximum=10.0)


class Rounds(Generic[K]):
    """Hands each key to `handle`, which says after how many seconds it is next due, or None; never one key twice at once.

    One heap has the times of all keys, by the clock that is given. If `handle` raises, the key comes again with growing
    delays.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        rng: random.Random,
        handle: Callable[[K], Awaitable[float | None]],
        *,
        workers: int,
    ) -> None:
        self._name = name
        self._handle = handle
        self._workers = workers
        self._queue: WorkQueue[K] = WorkQueue(name, clock, rng, QueueOptions(backoff=_PAUSE))

    def add(self, key: K) -> None:
        """It is due now."""
        self._queue.add(key)

    async def run(self) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(), name=f"times of {self._name}")
            for _ in range(self._workers):
                group.create_task(self._work(), name=self._name)

    async def _work(self) -> None:
        while True:
            key = (await self._queue.get()).key
            try:
                await self._attempt(key)
            finally:
                self._queue.done(key)

    async def _attempt(self, key: K) -> None:
        try:
            seconds = await self._handle(key)
        except NavarchError as error:
            _log.warning("%s: %s; tried again in %.1f s", self._name, error, self._queue.retry(key))
        except Exception:  # noqa: BLE001 - whatever was overlooked, the others go on
            _log.exception("%s: %s failed; tried again in %.1f s", self._name, key, self._queue.retry(key))
        else:
            self._queue.forget(key)
            if seconds is not None:
                self._queue.add_after(key, seconds)
