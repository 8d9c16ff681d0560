"""Numbered channels in the messages of a WebSocket: the first byte of each says to which it belongs."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Final, NamedTuple

from navarch.cluster.server.wire.request import Socket

_CLOSED: Final = 255
_ZERO: Final = ord("0")


class Piece(NamedTuple):
    """What came on a channel; None if nothing more will come on it."""

    channel: int
    data: bytes | None


def is_base64(protocol: str) -> bool:
    """Whether the messages of that protocol are text.

    >>> [is_base64(name) for name in ("v4.base64.channel.k8s.io", "v5.channel.k8s.io", "")]
    [True, False, False]
    """
    return "base64." in protocol


class Channels:
    """The channels of one WebSocket."""

    def __init__(self, socket: Socket, protocol: str) -> None:
        self._socket = socket
        self._base64 = is_base64(protocol)
        self._can_close = protocol.startswith("v5.")

    async def receive(self) -> Piece | None:
        """The next piece; None when the client has closed, or has broken the protocol."""
        while (message := await self._socket.receive()) is not None:
            if self._can_close and message[:1] == bytes([_CLOSED]):
                return Piece(message[1], None) if len(message) == 2 else None
            if message and (piece := self._decoded(message)) is not None:
                return piece
        return None

    def _decoded(self, message: bytes) -> Piece | None:
        if not self._base64:
            return Piece(message[0], message[1:])
        try:
            return Piece(message[0] - _ZERO, b64decode(message[1:], validate=True))
        except binascii.Error:
            return None

    async def send(self, channel: int, data: bytes) -> None:
        """Sends a message on a channel; waits while the client takes no more."""
        if self._base64:
            await self._socket.send(bytes([_ZERO + channel]) + b64encode(data))
        else:
            await self._socket.send(bytes([channel]) + data)
