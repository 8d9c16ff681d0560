"""`Writer` writes to etcd without a break, and remembers the acknowledged writes."""

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
    """Writes one key after the other, each once, through any member that serves.

    `endpoints` returns the current client URLs; it is called again whenever a write fails. `longest_gap` is the longest
    time without a successful write since it was last set to 0, in seconds.
    """

    def __init__(self, endpoints: Callable[[], Awaitable[tuple[str, ...]]], prefix: bytes = PREFIX) -> None:
        self._endpoints = endpoints
        self._prefix = prefix
        self._tried = 0
        self._last = 0.0
        self.acknowledged: list[int] = []
        self.longest_gap = 0.0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Writes for the duration of the block."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._write())
            try:
                yield
            finally:
                task.cancel()

    async def missing(self) -> list[int]:
        """Returns the acknowledged writes that etcd does not have."""
        async with await self.client(await self._endpoints(), hurried=False) as etcd:
            found = {each.key async for page in etcd.kv.pages(self._prefix, size=1000) for each in page}
        return [number for number in self.acknowledged if self.key(number) not in found]

    async def client(self, endpoints: tuple[str, ...], *, hurried: bool) -> EtcdClient:
        """Returns a client of these endpoints; a hurried one gives up soon."""
        if not hurried:
            return EtcdClient(EtcdOptions(endpoints=endpoints))
        return EtcdClient(EtcdOptions(endpoints=endpoints, timeout=0.5, connect_timeout=0.5, patience=0))

    async def write(self, etcd: EtcdClient, number: int) -> None:
        """Writes one key; raises `EtcdError`."""
        await etcd.kv.put(self.key(number), b"%d" % number)
        self.acknowledged.append(number)

    def key(self, number: int) -> bytes:
        """Returns the key of a write."""
        return self._prefix + b"%09d" % number

    async def _write(self) -> None:
        self._last = time.monotonic()
        while True:
            endpoints = await self._endpoints()
            if endpoints:
                async with await self.client(endpoints, hurried=True) as etcd:
                    await self._write_until_it_fails(etcd)
            await asyncio.sleep(_PAUSE)

    async def _write_until_it_fails(self, etcd: EtcdClient) -> None:
        try:
            while True:
                self._tried += 1
                await self.write(etcd, self._tried)
                now = time.monotonic()
                self.longest_gap, self._last = max(self.longest_gap, now - self._last), now
                await asyncio.sleep(_PAUSE)
        except EtcdError:
            return
