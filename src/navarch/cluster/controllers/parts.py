"""What the parts of the control plane that are no controllers of one kind are built from."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from navarch._base.backoff import Backoff
from navarch._base.clock import Clock
from navarch.cache import Cache
from navarch.client import Client
from navarch.cluster.controllers.podbook import PodBook
from navarch.controller.events import Recorder
from navarch.errors import Conflict, NavarchError
from navarch.queue import QueueOptions, WorkQueue

K = TypeVar("K", bound=Hashable)

_log = logging.getLogger("navarch.cluster.controllers")
_SLOWLY = Backoff(initial=0.01, maximum=60.0)


@dataclass(frozen=True, slots=True)
class Around:
    """What all parts share: the client they write with, the cache they read from, whom they tell of events, and what is
    known of pods.

    What a part asks of the cache, it asks when it is made: everything is listed once before any part runs.
    """

    client: Client
    cache: Cache
    recorder: Recorder
    pods: PodBook

    @property
    def clock(self) -> Clock:
        """The clock that all waits go by."""
        return self.client.clock

    @property
    def rng(self) -> random.Random:
        """Where jitter comes from."""
        return self.client.rng


class Part(Protocol):
    """Something that works beside the controllers. It may be run again after it has failed."""

    async def run(self) -> None:
        """Works until it is cancelled."""
        ...


class Workers(Generic[K]):
    """Hands each key that is put into `queue` to `handle`, never one key twice at once.

    `handle` returns None when there is nothing more to do for the key, or after how many seconds to look again. If it
    raises, the key comes again with growing delays.
    """

    def __init__(
        self,
        name: str,
        around: Around,
        handle: Callable[[K], Awaitable[float | None]],
        *,
        concurrency: int = 8,
        backoff: Backoff = _SLOWLY,
    ) -> None:
        self._name = name
        self._handle = handle
        self._concurrency = concurrency
        self.queue: WorkQueue[K] = WorkQueue(name, around.clock, around.rng, QueueOptions(backoff=backoff))

    async def run(self) -> None:
        """Works until it is cancelled."""
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
        except Conflict:  # it has changed since, and will be looked at as it is then
            self.queue.retry(key)
        except NavarchError as error:
            delay = self.queue.retry(key)
            _log.info("%s of %s: %s; tried again in %.1f s", self._name, key, error, delay)
        except Exception:  # noqa: BLE001 - whatever was overlooked, the others go on
            delay = self.queue.retry(key)
            _log.exception("%s of %s failed; tried again in %.1f s", self._name, key, delay)
        else:
            self.queue.forget(key)
            if after is not None:
                self.queue.add_after(key, after)
