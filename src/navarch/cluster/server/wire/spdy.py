"""SPDY/3.1 as Kubernetes uses it: frames, and a connection with the streams that its client opens.

As in Kubernetes there is no flow control but the connection's own: a stream that nobody reads holds up the others.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from navarch.cluster.server.wire.byte_pipe import BytePipe
from navarch.cluster.server.wire.request import Socket

_WORDS: Final = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|allow|"
    "authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|"
    "content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|"
    "if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|"
    "proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|"
    "user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|"
    "keep-alive|origin"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)

DICTIONARY: Final = (
    b"".join(len(word).to_bytes(4, "big") + word.encode() for word in _WORDS.split("|")) + _REST.encode()
)


PROTOCOL_ERROR: Final = 1
_VERSION: Final = 3
_OPEN, _REPLY, _RESET, _PING, _GO_AWAY = 1, 2, 3, 6, 7
_FIN: Final = 1
_CONTROL: Final = 0x80000000
_HEAD: Final = 8
_LARGEST_CONTROL: Final = 2**16
_LARGEST_HEADERS: Final = 2**16
_PIECE: Final = 32 * 1024
MOST_STREAMS: Final = 1024
"""Streams that a client may have open at a time; a connection to a port takes two."""


class SpdyError(Exception):
    """The client does not speak SPDY/3.1."""


class SynStream(NamedTuple):
    """A new stream; `fin` if the client will send nothing on it. Names of headers are in lower case."""

    stream: int
    headers: dict[str, str]
    fin: bool


class DataFrame(NamedTuple):
    """A part of what is sent on a stream; the last one if `fin`."""

    stream: int
    data: bytes
    fin: bool


class RstStream(NamedTuple):
    """A stream is given up."""

    stream: int


class Ping(NamedTuple):
    """Is answered by the same."""

    number: int


class GoAway(NamedTuple):
    """The client wants to end."""


Frame = SynStream | DataFrame | RstStream | Ping | GoAway


class FrameDecoder:
    """Takes frames from bytes as they come. What the server has no use for is passed over."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now; raises `SpdyError`."""
        self._buffer += data
        while len(self._buffer) >= _HEAD:
            first, second = struct.unpack_from(">II", self._buffer)
            flags, size = second >> 24, second & 0xFFFFFF
            if first & _CONTROL and size > _LARGEST_CONTROL:
                raise SpdyError(f"expected at most {_LARGEST_CONTROL} bytes in a control frame, got {size}")
            if len(self._buffer) < _HEAD + size:
                return
            body = bytes(self._buffer[_HEAD : _HEAD + size])
            del self._buffer[: _HEAD + size]
            frame = (
                self._control(first, flags, body) if first & _CONTROL else DataFrame(first, body, bool(flags & _FIN))
            )
            if frame is not None:
                yield frame

    def _control(self, first: int, flags: int, body: bytes) -> Frame | None:
        version, kind = (first >> 16) & 0x7FFF, first & 0xFFFF
        if version != _VERSION:
            raise SpdyError(f"expected version {_VERSION}, got {version}")
        try:
            return self._known(kind, flags, body)
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"expected a frame of kind {kind}, got {error}") from error

    def _known(self, kind: int, flags: int, body: bytes) -> Frame | None:
        if kind == _OPEN:
            (stream,) = struct.unpack_from(">I", body)
            return SynStream(stream & 0x7FFFFFFF, self._headers(body[10:]), bool(flags & _FIN))
        if kind == _RESET:
            return RstStream(struct.unpack_from(">I", body)[0] & 0x7FFFFFFF)
        if kind == _PING:
            return Ping(struct.unpack_from(">I", body)[0])
        return GoAway() if kind == _GO_AWAY else None

    def _headers(self, block: bytes) -> dict[str, str]:
        text = self._inflate.decompress(block, _LARGEST_HEADERS)
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"expected at most {_LARGEST_HEADERS} bytes of headers, got more")
        (count,) = struct.unpack_from(">I", text)
        parts, place = [], 4
        for _ in range(2 * min(count, _LARGEST_HEADERS)):
            (size,) = struct.unpack_from(">I", text, place)
            parts.append(text[place + 4 : place + 4 + size].decode())
            place += 4 + size
        return {name.lower(): value for name, value in zip(parts[::2], parts[1::2], strict=True)}


class FrameEncoder:
    """Frames as bytes. Replies share a compressor: they must be sent in the order in which they were made."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """The stream is accepted."""
        headers = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(_REPLY, struct.pack(">I", stream) + headers)

    def data(self, stream: int, data: bytes, *, fin: bool = False) -> bytes:
        """A part of what is sent on a stream."""
        return struct.pack(">II", stream, (_FIN if fin else 0) << 24 | len(data)) + data

    def reset(self, stream: int) -> bytes:
        """The stream is refused, or given up."""
        return _control(_RESET, struct.pack(">II", stream, PROTOCOL_ERROR))

    def ping(self, number: int) -> bytes:
        """The answer to a ping."""
        return _control(_PING, struct.pack(">I", number))

    def go_away(self, last: int) -> bytes:
        """Nothing after stream `last` is served."""
        return _control(_GO_AWAY, struct.pack(">II", last, PROTOCOL_ERROR))


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack(">II", _CONTROL | _VERSION << 16 | kind, len(body)) + body


_log = logging.getLogger("navarch.cluster.server")


class StreamHandler(Protocol):
    """What the streams are for."""

    def wants(self, headers: Mapping[str, str]) -> bool:
        """Whether a stream with these headers is accepted."""
        ...

    def begin(self, stream: SpdyStream) -> None:
        """The stream was accepted, and the client knows."""
        ...


class SpdyStream:
    """Bytes in both directions, each of which can end alone."""

    def __init__(self, connection: SpdyConnection, number: int, headers: Mapping[str, str]) -> None:
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


class SpdyConnection:
    """Serves the streams that a client opens while `run` runs."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._encoder = FrameEncoder()
        self._streams: dict[int, SpdyStream] = {}
        self._finished: set[int] = set()
        self._last = 0

    async def run(self, service: StreamHandler) -> None:
        """Until the client leaves, or what it says makes no sense."""
        decoder = FrameDecoder()
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

    async def _take(self, frame: Frame, service: StreamHandler) -> None:
        if isinstance(frame, SynStream):
            await self._open(frame, service)
        elif isinstance(frame, Ping):
            await self._socket.send(self._encoder.ping(frame.number))
        elif isinstance(frame, RstStream):
            self._finished.discard(frame.stream)
            if stream := self._streams.pop(frame.stream, None):
                stream.ignore()
        elif isinstance(frame, DataFrame) and (stream := self._streams.get(frame.stream)):
            await stream.take(frame.data, fin=frame.fin)
            if frame.fin:
                self._forget_half(frame.stream)

    async def _open(self, frame: SynStream, service: StreamHandler) -> None:
        is_next = frame.stream % 2 == 1 and frame.stream > self._last
        if not is_next or len(self._streams) >= MOST_STREAMS or not service.wants(frame.headers):
            await self._socket.send(self._encoder.reset(frame.stream))
            return
        self._last = frame.stream
        stream = self._streams[frame.stream] = SpdyStream(self, frame.stream, frame.headers)
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
