"""Somebody who writes to etcd all along, and remembers what was acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from navarch.errors import EtcdError
from navarch.etcd import EtcdClient, EtcdOptions

__all__ = ["PREFIX", "Writer"]

PREFIX = b"/demo/"
_PAUSE = 0.01


class Writer:
    """Writes one key after the other, each once, through whichever member serves.

    `endpoints` says where members are now; it is asked again whenever one fails. `longest_gap` is the longest time without
    an acknowledged write since it was last set to 0, in seconds.
    """

    def __init__(self, endpoints: Callable[[], Awaitable[tuple[str, ...]]]) -> None:
        self._endpoints = endpoints
        self._tried = 0
        self._last = 0.0
        self.acknowledged: list[int] = []
        self.longest_gap = 0.0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Writes while the block lasts."""
        self._last = time.monotonic()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._write())
            try:
                yield
            finally:
                task.cancel()

    async def missing(self) -> list[int]:
        """Which of the acknowledged writes are not there."""
        async with EtcdClient(EtcdOptions(endpoints=await self._endpoints())) as etcd:
            found = {each.key async for page in etcd.kv.pages(PREFIX, size=1000) for each in page}
        return [number for number in self.acknowledged if _key(number) not in found]

    async def _write(self) -> None:
        while True:
            endpoints = await self._endpoints()
            if endpoints:
                options = EtcdOptions(endpoints=endpoints, timeout=0.5, connect_timeout=0.5, patience=0)
                async with EtcdClient(options) as etcd:
                    await self._write_until_it_fails(etcd)
            await asyncio.sleep(_PAUSE)

    async def _write_until_it_fails(self, etcd: EtcdClient) -> None:
        try:
            while True:
                self._tried += 1
                number = self._tried
                await etcd.kv.put(_key(number), b"%d" % number)
                self._acknowledge(number)
                await asyncio.sleep(_PAUSE)
        except EtcdError:
            return

    def _acknowledge(self, number: int) -> None:
        now = time.monotonic()
        self.acknowledged.append(number)
        self.longest_gap, self._last = max(self.longest_gap, now - self._last), now


def _key(number: int) -> bytes:
    return PREFIX + b"%09d" % number
