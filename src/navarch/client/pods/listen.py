"""A local port that leads to a pod."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from navarch._base.clock import Clock
from navarch._base.tasks import cancel_and_wait
from navarch.client.pods.alongside import alongside
from navarch.client.pods.stream import PodStream
from navarch.errors import ConnectError, ConnectionLostError, NavarchError

__all__ = ["Listener", "listening"]

HOST: Final = "127.0.0.1"

_log = logging.getLogger("navarch.client")
_CHUNK = 65536
_SILENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to connect to."""

    port: int
    host: str = HOST


@asynccontextmanager
async def listening(connect: Callable[[], Awaitable[PodStream]], port: int, clock: Clock) -> AsyncIterator[Listener]:
    """Carries each connection to a local port over one that `connect` gives; all are closed at the end."""
    try:
        async with asyncio.TaskGroup() as group:
            carriers = _Carriers(connect, clock, group)
            async with _serving(carriers, port) as found:
                yield Listener(found)
    except BaseExceptionGroup as failures:  # from a carrier or from the user's own block: nobody asked for a group
        raise failures.exceptions[0] from failures.exceptions[0].__cause__


@asynccontextmanager
async def _serving(carriers: _Carriers, port: int) -> AsyncIterator[int]:
    try:
        server = await asyncio.start_server(carriers.accept, HOST, port)
    except OSError as error:
        raise ConnectError(
            f"expected to listen on {HOST}:{port}, got {error.strerror}; port 0 takes any that is free"
        ) from error
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await carriers.stop()
        await server.wait_closed()


class _Carriers:
    """One task for each local connection."""

    def __init__(self, connect: Callable[[], Awaitable[PodStream]], clock: Clock, group: asyncio.TaskGroup) -> None:
        self._connect = connect
        self._clock = clock
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._stopped:
            writer.transport.abort()
            return
        task = self._group.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        self._stopped = True
        await cancel_and_wait(*self._tasks)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with await self._connect() as stream:
                await alongside(_downward(stream, writer), self._upward(reader, stream))
            writer.close()
        except NavarchError as error:
            _log.warning("%s", error)
        except OSError:
            _log.debug("a local connection broke off", exc_info=True)
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    async def _upward(self, reader: asyncio.StreamReader, stream: PodStream) -> None:
        with suppress(ConnectionLostError):  # the other direction knows why
            while data := await reader.read(_CHUNK):
                await stream.write(data)
            await self._silence(stream)
            await stream.close()

    async def _silence(self, stream: PodStream) -> None:
        received = -1
        while stream.received != received:
            received = stream.received
            await self._clock.sleep(_SILENCE_SECONDS)


async def _downward(stream: PodStream, writer: asyncio.StreamWriter) -> None:
    while data := await stream.read(_CHUNK):
        writer.write(data)
        await writer.drain()
