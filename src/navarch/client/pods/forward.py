"""Connections to the ports of a pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from navarch._base.clock import Clock
from navarch.client.pods.channels import V4
from navarch.client.pods.listen import Listener, listening
from navarch.client.pods.sockets import Sockets
from navarch.client.pods.stream import PodStream
from navarch.client.subresources import PODS
from navarch.client.transport import WebSocket
from navarch.errors import InvalidValueError

__all__ = ["Forwarding", "PortForward"]


class PortForward:
    """A port of a pod: `connect` gives a connection to it, `listen` a local port that leads there."""

    def __init__(self, open_socket: Callable[[], Awaitable[WebSocket]], port: int, what: str, clock: Clock) -> None:
        self._open_socket = open_socket
        self._port = port
        self._what = what
        self._clock = clock
        self._streams: set[PodStream] = set()

    async def connect(self) -> PodStream:
        """A new connection, closed with the forward at the latest. Raises an `ApiError` if the server refuses."""
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


class Forwarding(Sockets):
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
