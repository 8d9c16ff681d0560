"""Descriptors as streams of bytes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

__all__ = ["Pipe"]

_PIECE: Final = 65536


class Pipe:
    """One end of a pipe or a terminal that is ours to close."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        os.set_blocking(fd, False)

    async def pieces(self) -> AsyncIterator[bytes]:
        """What comes, until the other end is closed or this one is."""
        while self.fd >= 0:
            try:
                data = os.read(self.fd, _PIECE)
            except BlockingIOError:
                await self._ready(reading=True)
                continue
            except OSError:  # the other end of a terminal is gone
                return
            if not data:
                return
            yield data

    async def write(self, data: bytes) -> None:
        """Writes all of it; what nobody reads any more is dropped."""
        while data and self.fd >= 0:
            try:
                data = data[os.write(self.fd, data) :]
            except BlockingIOError:
                await self._ready(reading=False)
            except OSError:
                return

    def close(self) -> None:
        """Whoever waits here goes on at once. May be called twice."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(fd)
            loop.remove_writer(fd)
            for wake in self._waiting:
                wake()
            os.close(fd)

    _waiting: tuple[Callable[[], None], ...] = ()

    async def _ready(self, *, reading: bool) -> None:
        loop, fd = asyncio.get_running_loop(), self.fd
        ready = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        self._waiting = (*self._waiting, wake)
        (loop.add_reader if reading else loop.add_writer)(fd, wake)
        try:
            await ready
        finally:
            self._waiting = tuple(known for known in self._waiting if known is not wake)
            if self.fd == fd:
                (loop.remove_reader if reading else loop.remove_writer)(fd)
