"""The other end of the server's sockets, in memory."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator

from navarch.cluster.server.wire.spdy import DICTIONARY
from navarch.cluster.streams import ContainerProcess, LogOptions, ProcessOptions
from navarch.errors import ContainerError

FIN = 1


class FakeSocket:
    """What a client sends is put into `coming`, None when it leaves; what it gets is in `sent`."""

    def __init__(self) -> None:
        self.coming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive(self) -> bytes | None:
        return await self.coming.get()

    async def send(self, data: bytes) -> None:
        await self.sent.put(data)

    async def got(self) -> bytes:
        """The next that the client gets."""
        async with asyncio.timeout(30):
            return await self.sent.get()


class SpdyClient:
    """Speaks SPDY on a `FakeSocket`."""

    def __init__(self, socket: FakeSocket) -> None:
        self._socket = socket
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def frame(self, number: int, headers: dict[str, str]) -> bytes:
        """The bytes that open a stream."""
        block = struct.pack(">I", len(headers))
        for name, value in headers.items():
            block += (
                struct.pack(">I", len(name)) + name.encode() + struct.pack(">I", len(value.encode())) + value.encode()
            )
        packed = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack(">IIH", number, 0, 0) + packed)

    def open(self, number: int, **headers: str) -> None:
        """Opens a stream."""
        self._socket.coming.put_nowait(self.frame(number, headers))

    def data(self, number: int, data: bytes = b"", *, fin: bool = False) -> None:
        """Sends on a stream."""
        self._socket.coming.put_nowait(struct.pack(">II", number, (FIN if fin else 0) << 24 | len(data)) + data)

    def ping(self, number: int) -> None:
        """Asks for an answer."""
        self._socket.coming.put_nowait(control(6, struct.pack(">I", number)))

    def leave(self) -> None:
        """Closes the connection."""
        self._socket.coming.put_nowait(None)

    async def got(self) -> tuple[str, int, bytes, bool]:
        """The next frame: what it is, of which stream, with what, and whether it is the last."""
        raw = await self._socket.got()
        first, second = struct.unpack_from(">II", raw)
        fin, body = bool(second >> 24 & FIN), raw[8:]
        if not first >> 31:
            return "data", first, body, fin
        kinds = {2: "reply", 3: "reset", 6: "ping", 7: "go away"}
        return kinds[first & 0xFFFF], struct.unpack_from(">I", body)[0], b"", fin


def control(kind: int, body: bytes) -> bytes:
    """A control frame."""
    return struct.pack(">II", 0x80030000 | kind, len(body)) + body


class FakeProcess:
    """Writes back what it reads until its input ends, or what it is told to."""

    def __init__(self, *, code: int = 0, reads: bool = True) -> None:
        self.closed = asyncio.Event()
        self.sizes: list[tuple[int, int]] = []
        self._code = code
        self._reads = reads
        self._output: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def stdout(self) -> AsyncIterator[bytes]:
        while (piece := await self._output.get()) is not None:
            yield piece

    async def stderr(self) -> AsyncIterator[bytes]:
        for piece in (b"warned",):
            yield piece

    async def write(self, data: bytes) -> None:
        if not self._reads:
            await asyncio.Event().wait()
        await self._output.put(data)

    async def close_stdin(self) -> None:
        await self._output.put(None)

    async def resize(self, width: int, height: int) -> None:
        self.sizes.append((width, height))

    async def wait(self) -> int:
        return self._code

    async def close(self) -> None:
        self.closed.set()


class FakeNode:
    """A node whose pods listen where `ports` says."""

    def __init__(self, ports: dict[int, int]) -> None:
        self._ports = ports
        self.opened: list[asyncio.StreamWriter] = []

    def is_running(self, pod_uid: str, container: str = "") -> bool:
        raise NotImplementedError

    def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def exec(
        self, pod_uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions
    ) -> ContainerProcess:
        raise NotImplementedError

    async def attach(self, pod_uid: str, container: str, options: ProcessOptions) -> ContainerProcess:
        raise NotImplementedError

    async def forward(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if port not in self._ports:
            raise ContainerError(f"failed to connect to {pod_uid}:{port}: connection refused")
        reader, writer = await asyncio.open_connection("127.0.0.1", self._ports[port])
        self.opened.append(writer)
        return reader, writer
