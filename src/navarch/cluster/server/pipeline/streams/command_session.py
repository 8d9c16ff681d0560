"""Carries the streams of a command between a client and a process, over WebSocket channels or SPDY."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple, Protocol

import msgspec

from navarch._base.clock import Clock
from navarch._base.tasks import unless
from navarch.cluster.server.pipeline.streams.upgrades import Channels
from navarch.cluster.server.wire.request import Json, Socket
from navarch.cluster.server.wire.spdy import SpdyConnection, SpdyStream
from navarch.cluster.streams import ContainerProcess, ProcessOptions
from navarch.errors import ContainerError

_ERROR: Final = 3
_CHANNEL_INPUTS: Final[dict[int, Literal["stdin", "resize"]]] = {0: "stdin", 4: "resize"}
_PIECE: Final = 32 * 1024
_KIND: Final = "streamtype"
_PATIENCE: Final = 30.0
"""Seconds that a client may take to open its streams."""
_STREAM_INPUTS: Final[dict[str, Literal["stdin", "resize"]]] = {"stdin": "stdin", "resize": "resize"}
_WITH_SIZE: Final = frozenset({"v4.channel.k8s.io", "v3.channel.k8s.io"})


def exited(code: int, command: Sequence[str]) -> Json:
    """A command that ran to its end."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    said = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {said}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed(why: str) -> Json:
    """A command that could not be run."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    }


Output = Literal["stdout", "stderr"]


class ClientInput(NamedTuple):
    """What comes from a client; without data, nothing more will come on that stream."""

    stream: Literal["stdin", "resize"]
    data: bytes | None


class CommandClient(Protocol):
    """The client's side of a conversation."""

    async def receive(self) -> ClientInput | None:
        """What the client sends; None when it has left."""
        ...

    async def write(self, stream: Output, data: bytes) -> None:
        """Carries output to the client."""
        ...

    async def finish(self, status: Json) -> None:
        """Says how it ended; nothing follows."""
        ...


_Length = Annotated[int, msgspec.Meta(ge=0, lt=2**16)]


class _TerminalSize(msgspec.Struct):
    Width: _Length
    Height: _Length


async def converse(
    start: Callable[[], Awaitable[ContainerProcess]], wire: CommandClient, outcome: Callable[[int], Json]
) -> None:
    """Starts the process and carries everything between it and the client, until it ends or the client leaves."""
    try:
        process = await start()
    except ContainerError as error:
        await wire.finish(failed(str(error)))
        return
    try:
        code = await _until_over(process, wire)
        if code is not None:
            await wire.finish(outcome(code))
    finally:
        await process.close()


async def _until_over(process: ContainerProcess, wire: CommandClient) -> int | None:
    """The exit code; None if the client leaves first."""
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(_ended(process, wire))
        feeding = group.create_task(_fed(process, wire))
        await asyncio.wait((ending, feeding), return_when=asyncio.FIRST_COMPLETED)
        feeding.cancel()
        ending.cancel()
    return None if ending.cancelled() else ending.result()


async def _ended(process: ContainerProcess, wire: CommandClient) -> int:
    """All that it writes is carried before its exit code counts."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_carried(process.stdout(), "stdout", wire))
        group.create_task(_carried(process.stderr(), "stderr", wire))
    return await process.wait()


async def _carried(pieces: AsyncIterator[bytes], stream: Output, wire: CommandClient) -> None:
    async for piece in pieces:
        await wire.write(stream, piece)


async def _fed(process: ContainerProcess, wire: CommandClient) -> None:
    while (given := await wire.receive()) is not None:
        if given.stream == "resize":
            await _resize(process, given.data or b"")
        elif given.data is None:
            await process.close_stdin()
        else:
            await process.write(given.data)


async def _resize(process: ContainerProcess, data: bytes) -> None:
    try:
        size = msgspec.json.decode(data, type=_TerminalSize)
    except msgspec.DecodeError:
        return
    await process.resize(size.Width, size.Height)


_OUTPUTS: Final[dict[Output, int]] = {"stdout": 1, "stderr": 2}


class CommandChannels:
    """See `CommandClient`."""

    def __init__(self, socket: Socket, protocol: str) -> None:
        self._channels = Channels(socket, protocol)
        self._has_status = protocol.startswith(("v4.", "v5."))

    async def greet(self, options: ProcessOptions) -> None:
        """An empty message tells the client that it is connected."""
        channel = 1 if options.stdout else 2 if options.stderr else _ERROR
        await self._channels.send(channel, b"")

    async def receive(self) -> ClientInput | None:
        """See `CommandClient`."""
        while (piece := await self._channels.receive()) is not None:
            if stream := _CHANNEL_INPUTS.get(piece.channel):
                return ClientInput(stream, piece.data)
        return None

    async def write(self, stream: Output, data: bytes) -> None:
        """See `CommandClient`."""
        for start in range(0, len(data), _PIECE):
            await self._channels.send(_OUTPUTS[stream], data[start : start + _PIECE])

    async def finish(self, status: Json) -> None:
        """See `CommandClient`. Before version 4 there was only a text, and only of failures."""
        if self._has_status:
            await self._channels.send(_ERROR, msgspec.json.encode(status))
        elif status["status"] != "Success":
            await self._channels.send(_ERROR, status["message"].encode())


async def over_streams(
    socket: Socket,
    protocol: str,
    options: ProcessOptions,
    clock: Clock,
    talk: Callable[[CommandStreams], Awaitable[None]],
) -> None:
    """Talks when the client has opened all streams; one that does not do so in time is left."""
    async with asyncio.TaskGroup() as group:
        wire = CommandStreams(protocol, options, group)
        wire.start(socket)
        if await unless(clock.sleep(_PATIENCE), wire.is_open()):
            await talk(wire)
        wire.stop()


class CommandStreams:
    """See `CommandClient`."""

    def __init__(self, protocol: str, options: ProcessOptions, group: asyncio.TaskGroup) -> None:
        self._has_status = protocol.startswith("v4.")
        self._expected = _expected(protocol, options)
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: dict[str, SpdyStream] = {}
        self._settled = asyncio.Event()
        self._ready: asyncio.Queue[ClientInput | None] = asyncio.Queue(1)

    def start(self, socket: Socket) -> None:
        """Begins to listen to the client."""
        self._tasks.append(self._group.create_task(self._run(socket)))

    def stop(self) -> None:
        """Listens no more."""
        for task in self._tasks:
            task.cancel()

    async def is_open(self) -> bool:
        """Whether all streams are there; False if the client leaves before they are."""
        await self._settled.wait()
        return len(self._streams) == len(self._expected)

    async def _run(self, socket: Socket) -> None:
        await SpdyConnection(socket).run(self)
        self._settled.set()
        await self._ready.put(None)

    def wants(self, headers: Mapping[str, str]) -> bool:
        """See `Service`."""
        kind = headers.get(_KIND, "")
        return kind in self._expected and kind not in self._streams

    def begin(self, stream: SpdyStream) -> None:
        """See `Service`."""
        self._streams[stream.headers[_KIND]] = stream
        if (name := _STREAM_INPUTS.get(stream.headers[_KIND])) is not None:
            self._tasks.append(self._group.create_task(self._read(name)))
        if len(self._streams) == len(self._expected):
            self._settled.set()

    async def receive(self) -> ClientInput | None:
        """See `CommandClient`. Standard input and sizes are read side by side."""
        return await self._ready.get()

    async def _read(self, name: Literal["stdin", "resize"]) -> None:
        while (data := await self._streams[name].receive()) is not None:
            await self._ready.put(ClientInput(name, data))
        await self._ready.put(ClientInput(name, None))

    async def write(self, stream: Output, data: bytes) -> None:
        """See `CommandClient`."""
        if stream in self._streams:
            await self._streams[stream].send(data)

    async def finish(self, status: Json) -> None:
        """See `CommandClient`. Before version 4 there was only a text, and only of failures."""
        for name in ("stdout", "stderr"):
            if name in self._streams:
                await self._streams[name].finish()
        error = self._streams["error"]
        if self._has_status:
            await error.send(msgspec.json.encode(status))
        elif status["status"] != "Success":
            await error.send(status["message"].encode())
        await error.finish()


def _expected(protocol: str, options: ProcessOptions) -> set[str]:
    wanted = {"stdin": options.stdin, "stdout": options.stdout, "stderr": options.stderr}
    wanted["resize"] = options.tty and protocol in _WITH_SIZE
    return {"error", *(name for name, is_wanted in wanted.items() if is_wanted)}
