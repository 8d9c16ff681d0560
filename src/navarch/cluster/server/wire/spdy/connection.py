"""A connection that speaks SPDY/3.1, and its streams.

As in Kubernetes there is no flow control but the connection's own: a stream that nobody reads holds up the others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from navarch.cluster.server.wire.byte_pipe import BytePipe
from navarch.cluster.server.wire.request import Socket
from navarch.cluster.server.wire.spdy.frames import (
    Data,
    Decoder,
    Encoder,
    Frame,
    GoAway,
    Open,
    Ping,
    Reset,
    SpdyError,
)

_log = logging.getLogger("navarch.cluster.server")
_PIECE: Final = 32 * 1024
MOST_STREAMS: Final = 1024
"""Streams that a client may have open at a time; a connection to a port takes two."""


class Service(Protocol):
    """What the streams are for."""

    def wants(self, headers: Mapping[str, str]) -> bool:
        """Whether a stream with these headers is accepted."""
        ...

    def begin(self, stream: Stream) -> None:
        """The stream was accepted, and the client knows."""
        ...


class Stream:
    """Bytes in both directions, each of which can end alone."""

    def __init__(self, connection: Connection, number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        """As the client gave them, by names in lower case."""
        self._connection = connection
        self._coming = BytePipe()
        self._has_finished = False

    async def receive(self) -> bytes | None:
        """What comes next; None when the client has finished or reset the stream."""
        return await self._coming.get()

    async def send(self, data: bytes) -> None:
        """Sends bytes; waits while the client takes no more."""
        for start in range(0, len(data), _PIECE):
            await self._connection.send_data(self.number, data[start : start + _PIECE])

    async def finish(self) -> None:
        """Nothing more is sent on it."""
        if not self._has_finished:
            self._has_finished = True
            await self._connection.send_data(self.number, b"", fin=True)

    def ignore(self) -> None:
        """Nothing more is taken from it: what still comes is dropped."""
        self._coming.close()

    async def reset(self) -> None:
        """Gives it up."""
        self._has_finished = True
        self._coming.close()
        await self._connection.reset(self.number)

    async def take(self, data: bytes, *, fin: bool) -> None:
        """For the connection: this came from the client."""
        if data:
            await self._coming.put(data)
        if fin:
            self._coming.close()


class Connection:
    """Serves the streams that a client opens while `run` runs."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._encoder = Encoder()
        self._streams: dict[int, Stream] = {}
        self._finished: set[int] = set()
        self._last = 0

    async def run(self, service: Service) -> None:
        """Until the client leaves, or what it says makes no sense."""
        decoder = Decoder()
        try:
            while (data := await self._socket.receive()) is not None:
                for frame in decoder.feed(data):
                    if isinstance(frame, GoAway):
                        return
                    await self._take(frame, service)
        except SpdyError as error:
            _log.debug("a client breaks the protocol: %s", error)
            await self._socket.send(self._encoder.go_away(self._last))
        finally:
            for stream in self._streams.values():
                stream.ignore()

    async def _take(self, frame: Frame, service: Service) -> None:
        if isinstance(frame, Open):
            await self._open(frame, service)
        elif isinstance(frame, Ping):
            await self._socket.send(self._encoder.ping(frame.number))
        elif isinstance(frame, Reset):
            self._finished.discard(frame.stream)
            if stream := self._streams.pop(frame.stream, None):
                stream.ignore()
        elif isinstance(frame, Data) and (stream := self._streams.get(frame.stream)):
            await stream.take(frame.data, fin=frame.fin)
            if frame.fin:
                self._forget_half(frame.stream)

    async def _open(self, frame: Open, service: Service) -> None:
        is_next = frame.stream % 2 == 1 and frame.stream > self._last
        if not is_next or len(self._streams) >= MOST_STREAMS or not service.wants(frame.headers):
            await self._socket.send(self._encoder.reset(frame.stream))
            return
        self._last = frame.stream
        stream = self._streams[frame.stream] = Stream(self, frame.stream, frame.headers)
        await self._socket.send(self._encoder.reply(frame.stream))
        service.begin(stream)
        if frame.fin:
            stream.ignore()
            self._forget_half(frame.stream)

    def _forget_half(self, number: int) -> None:
        """A stream that both sides have finished is over."""
        if number in self._finished:
            self._finished.discard(number)
            self._streams.pop(number, None)
        else:
            self._finished.add(number)

    async def send_data(self, number: int, data: bytes, *, fin: bool = False) -> None:
        """For streams. What is sent on one that is over is dropped."""
        if number not in self._streams:
            return
        if fin:
            self._forget_half(number)
        await self._socket.send(self._encoder.data(number, data, fin=fin))

    async def reset(self, number: int) -> None:
        """For streams."""
        self._finished.discard(number)
        if self._streams.pop(number, None) is not None:
            await self._socket.send(self._encoder.reset(number))
