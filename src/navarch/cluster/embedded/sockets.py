"""A WebSocket without a network."""

from __future__ import annotations

from navarch._base.tasks import TaskSet
from navarch.cluster.server.wire.byte_pipe import BytePipe
from navarch.cluster.server.wire.request import Upgrade
from navarch.errors import ConnectionLostError

__all__ = ["InProcessWebSocket"]


class _ServerEnd:
    """See `Socket`."""

    def __init__(self, coming: BytePipe, going: BytePipe) -> None:
        self._coming = coming
        self._going = going

    async def receive(self) -> bytes | None:
        return await self._coming.get()

    async def send(self, data: bytes) -> None:
        if not await self._going.put(data):
            raise ConnectionResetError("the client has closed the WebSocket")


class InProcessWebSocket:
    """The client's end; see `WebSocket`. The server's end works while it is open."""

    def __init__(self, upgrade: Upgrade) -> None:
        self.protocol = upgrade.protocol
        self._up, self._down = BytePipe(), BytePipe()
        self._serving = TaskSet()
        self._serving.start(self._serve(upgrade), f"WebSocket for {upgrade.protocol}")

    async def _serve(self, upgrade: Upgrade) -> None:
        try:
            await upgrade.serve(_ServerEnd(self._up, self._down))
        finally:
            self._up.close()
            self._down.close()

    async def send(self, data: bytes) -> None:
        """See `WebSocket`."""
        if not await self._up.put(data):
            raise ConnectionLostError(f"expected to send {len(data)} bytes, but the server has closed the WebSocket")

    async def receive(self) -> bytes | None:
        """See `WebSocket`."""
        return await self._down.get()

    async def close(self) -> None:
        """See `WebSocket`. The server has ended its work then."""
        self._up.close()
        self._down.close()
        await self._serving.stop()
