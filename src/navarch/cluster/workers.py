"""`Workers`: a worker pool on a work queue, for controllers and simulated nodes."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from navarch._base.backoff import Backoff
from navarch._base.clock import Clock
from navarch.errors import Conflict, NavarchError
from navarch.queue import QueueOptions, WorkQueue

K = TypeVar("K", bound=Hashable)

_log = logging.getLogger("navarch.cluster")
_BACKOFF: Final = Backoff(initial=0.01, maximum=60.0)


class Workers(Generic[K]):
    """Calls `handle` for each key of `queue`, never for one key twice at once.

    `handle` returns the seconds after which the key is due again, or None. After an exception the key is retried with
    growing delays. A `NavarchError` is logged at `level`; a `Conflict` is not logged.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        rng: random.Random,
        handle: Callable[[K], Awaitable[float | None]],
        *,
        concurrency: int = 8,
        backoff: Backoff = _BACKOFF,
        level: int = logging.INFO,
    ) -> None:
        self._name = name
        self._handle = handle
        self._concurrency = concurrency
        self._level = level
        self.queue: WorkQueue[K] = WorkQueue(name, clock, rng, QueueOptions(backoff=backoff))

    async def run(self) -> None:
        """Runs the workers until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run(), name=f"queue of {self._name}")
            for _ in range(self._concurrency):
                group.create_task(self._work(), name=self._name)

    async def _work(self) -> None:
        while True:
            work = await self.queue.get()
            try:
                await self._attempt(work.key)
            finally:
                self.queue.done(work.key)

    async def _attempt(self, key: K) -> None:
        try:
            after = await self._handle(key)
        except Conflict:  # the object has changed, and the retry reads it again
            self.queue.retry(key)
        except NavarchError as error:
            delay = self.queue.retry(key)
            _log.log(self._level, "%s of %s failed: %s; retried in %.1f s", self._name, key, error, delay)
        except Exception:  # noqa: BLE001 - a bug must not stop the other keys
            delay = self.queue.retry(key)
            _log.exception("%s of %s failed; retried in %.1f s", self._name, key, delay)
        else:
            self.queue.forget(key)
            if after is not None:
                self.queue.add_after(key, after)
