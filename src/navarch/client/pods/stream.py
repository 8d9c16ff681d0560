"""One connection to a port of a pod.

It is a WebSocket of its own, with channel 0 for data and channel 1 for the reason of a failure; both begin with the
port number. So a slow connection does not block another. It cannot close one direction alone.
"""

from __future__ import annotations

from collections.abc import Callable

from navarch._base.tasks import AsyncCloseable
from navarch.client.pods.sockets import pieces
from navarch.client.transport import WebSocket
from navarch.errors import BadAnswerError, ConnectError, ConnectionLostError

_DATA = 0
_ERROR = 1
_REFUSED = "connection refused"


class PodStream(AsyncCloseable):
    """One connection to a port of a pod. Nothing is read ahead: the pod blocks while its data is not read."""

    def __init__(self, socket: WebSocket, port: int, what: str, forget: Callable[[PodStream], None]) -> None:
        self._socket = socket
        self._what = what
        self._forget = forget
        self._expected = dict.fromkeys((_DATA, _ERROR), port.to_bytes(2, "little"))
        self._unread = b""
        self._receiving = False
        self.received = 0
        """How many bytes have come from the pod."""

    async def read(self, limit: int = 65536) -> bytes:
        """Returns the next bytes as they arrive, at most `limit`; none when the pod has closed the connection.

        Raises `ConnectError` if no process in the pod listens on the port (this is known only now, not when
        connecting), `ConnectionLostError` if the connection broke.
        """
        while not self._unread and await self._receive():
            pass
        data, self._unread = self._unread[:limit], self._unread[limit:]
        return data

    async def write(self, data: bytes) -> None:
        """Sends bytes to the pod; waits while it reads no more. Raises like `read`."""
        try:
            for piece in pieces(_DATA, data):
                await self._socket.send(piece)
        except ConnectionLostError:
            while not self._receiving and await self._receive():
                pass  # the reason may have come before the end
            raise

    async def close(self) -> None:
        """Closes both directions; may be called twice."""
        self._forget(self)
        await self._socket.close()

    async def _receive(self) -> bool:
        """Receives the next message; False when there are no more."""
        self._receiving = True
        try:
            message = await self._socket.receive()
        finally:
            self._receiving = False
        if message is not None:
            self._take(message)
        return message is not None

    def _take(self, message: bytes) -> None:
        channel = message[0] if message else _DATA
        if channel not in self._expected:
            raise BadAnswerError(f"{self._what}: expected channel 0 or 1, got channel {channel}")
        data = self._without_port(channel, message[1:])
        if channel == _DATA:
            self._unread += data
            self.received += len(data)
        elif data:
            raise self._failure(data.decode(errors="replace").strip())

    def _without_port(self, channel: int, data: bytes) -> bytes:
        expected = self._expected[channel]
        size = min(len(expected), len(data))
        if data[:size] != expected[:size]:
            raise BadAnswerError(
                f"{self._what}: expected channel {channel} to begin with the port, got {data[:size]!r}"
            )
        self._expected[channel] = expected[size:]
        return data[size:]

    def _failure(self, reason: str) -> ConnectError | ConnectionLostError:
        """Returns the error. Only a refused connection certainly had no effect; otherwise the pod may have read
        something.
        """
        if _REFUSED in reason:
            return ConnectError(
                f"{self._what}: nothing listens there ({reason}); check the port and that the pod is ready"
            )
        return ConnectionLostError(f"{self._what}: {reason}")
