"""Connections to the ports of a pod, and local ports that lead there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from navarch._base.clock import Clock
from navarch._base.tasks import cancel_and_wait
from navarch.client.pods.sockets import V4, WebSocketClient, alongside
from navarch.client.pods.stream import PodStream
from navarch.client.subresources import PODS
from navarch.client.transport import WebSocket
from navarch.errors import ConnectError, ConnectionLostError, InvalidValueError, NavarchError

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


class PortForward:
    """A port of a pod: `connect` returns a connection to it, `listen` a local port that leads there."""

    def __init__(self, open_socket: Callable[[], Awaitable[WebSocket]], port: int, what: str, clock: Clock) -> None:
        self._open_socket = open_socket
        self._port = port
        self._what = what
        self._clock = clock
        self._streams: set[PodStream] = set()

    async def connect(self) -> PodStream:
        """Returns a new connection, which closes with the forward at the latest. Raises an `ApiError` if the server
        refuses.
        """
        stream = PodStream(await self._open_socket(), self._port, self._what, self._streams.discard)
        self._streams.add(stream)
        return stream

    def listen(self, port: int = 0) -> AbstractAsyncContextManager[Listener]:
        """A port on 127.0.0.1, any free one by default, that leads to the pod while the `async with` lasts.

        If the pod cannot be reached, the local connection is reset and the reason is logged. When a local program stops
        sending, what the pod still sends is delivered until it has been silent for five seconds: the pod cannot be told.
        """
        return listening(self.connect, port, self._clock)

    async def close(self) -> None:
        """Closes every connection that `connect` gave."""
        async with asyncio.TaskGroup() as closing:
            for stream in tuple(self._streams):
                closing.create_task(stream.close())


class Forwarding(WebSocketClient):
    """port_forward."""

    @asynccontextmanager
    async def port_forward(self, name: str, port: int, *, namespace: str | None = None) -> AsyncIterator[PortForward]:
        """Connections to a port of a pod; nothing is opened before the first.

        Use it as `async with client.port_forward("web", 8080) as forward: stream = await forward.connect()`.
        """
        if not 0 < port < 2**16:
            raise InvalidValueError(f"expected a port from 1 to 65535, got {port}")
        what = f"{self._what('port-forward to', PODS, namespace, name)}:{port}"

        async def open_socket() -> WebSocket:
            return await self._open_socket(name, namespace, "portforward", {"ports": str(port)}, (V4,))

        forward = PortForward(open_socket, port, what, self._caller.clock)
        try:
            yield forward
        finally:
            await forward.close()
