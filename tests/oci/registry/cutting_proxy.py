"""A TCP proxy that breaks connections off in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

Direction = Literal["up", "down"]


class CuttingProxy:
    """Passes bytes on and counts them; the first connection over which so many bytes went in a direction is cut."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self.address = ""
        self.cuts: dict[Direction, int] = {}
        self.passed: dict[Direction, int] = {"up": 0, "down": 0}
        self.connections = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CuttingProxy]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass("up", reader, there_writer, writer))
                group.create_task(self._pass("down", there_reader, writer, there_writer))
        except* ConnectionError:
            pass
        finally:
            for each in (writer, there_writer):
                each.transport.abort()
            self._tasks.discard(task)

    async def _pass(
        self,
        direction: Direction,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamWriter,
    ) -> None:
        count = 0
        while chunk := await reader.read(2**14):
            writer.write(chunk)
            await writer.drain()
            count += len(chunk)
            self.passed[direction] += len(chunk)
            if count > self.cuts.get(direction, 2**62):
                del self.cuts[direction]
                break
        raise ConnectionResetError("cut, or closed by one side")
