"""A command over the channels of a WebSocket."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from navarch.cluster.server.pipeline.streams.channels import Channels
from navarch.cluster.server.pipeline.streams.conversation import Input, Output
from navarch.cluster.server.wire.request import Json, Socket
from navarch.cluster.streams import ProcessOptions

__all__ = ["CommandChannels"]

_OUTPUTS: Final[dict[Output, int]] = {"stdout": 1, "stderr": 2}
_ERROR: Final = 3
_INPUTS: Final[dict[int, Literal["stdin", "resize"]]] = {0: "stdin", 4: "resize"}
_PIECE: Final = 32 * 1024


class CommandChannels:
    """See `Wire`."""

    def __init__(self, socket: Socket, protocol: str) -> None:
        self._channels = Channels(socket, protocol)
        self._has_status = protocol.startswith(("v4.", "v5."))

    async def greet(self, options: ProcessOptions) -> None:
        """An empty message tells the client that it is connected."""
        channel = 1 if options.stdout else 2 if options.stderr else _ERROR
        await self._channels.send(channel, b"")

    async def receive(self) -> Input | None:
        """See `Wire`."""
        while (piece := await self._channels.receive()) is not None:
            if stream := _INPUTS.get(piece.channel):
                return Input(stream, piece.data)
        return None

    async def write(self, stream: Output, data: bytes) -> None:
        """See `Wire`."""
        for start in range(0, len(data), _PIECE):
            await self._channels.send(_OUTPUTS[stream], data[start : start + _PIECE])

    async def finish(self, status: Json) -> None:
        """See `Wire`. Before version 4 there was only a text, and only of failures."""
        if self._has_status:
            await self._channels.send(_ERROR, msgspec.json.encode(status))
        elif status["status"] != "Success":
            await self._channels.send(_ERROR, status["message"].encode())
