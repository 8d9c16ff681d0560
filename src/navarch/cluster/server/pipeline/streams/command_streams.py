"""A command over SPDY: one stream for each of its own, and one for how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import msgspec

from navarch._base.clock import Clock
from navarch._base.tasks import unless
from navarch.cluster.server.pipeline.streams.conversation import Input, Output
from navarch.cluster.server.pipeline.streams.spdy import Connection, Stream
from navarch.cluster.server.wire.request import Json, Socket
from navarch.cluster.streams import ProcessOptions

__all__ = ["CommandStreams", "over_streams"]

_KIND: Final = "streamtype"
_PATIENCE: Final = 30.0
"""Seconds that a client may take to open its streams."""
_INPUTS: Final[dict[str, Literal["stdin", "resize"]]] = {"stdin": "stdin", "resize": "resize"}
_WITH_SIZE: Final = frozenset({"v4.channel.k8s.io", "v3.channel.k8s.io"})


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
    """See `Wire`."""

    def __init__(self, protocol: str, options: ProcessOptions, group: asyncio.TaskGroup) -> None:
        self._has_status = protocol.startswith("v4.")
        self._expected = _expected(protocol, options)
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: dict[str, Stream] = {}
        self._settled = asyncio.Event()
        self._ready: asyncio.Queue[Input | None] = asyncio.Queue(1)

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
        await Connection(socket).run(self)
        self._settled.set()
        await self._ready.put(None)

    def wants(self, headers: Mapping[str, str]) -> bool:
        """See `Service`."""
        kind = headers.get(_KIND, "")
        return kind in self._expected and kind not in self._streams

    def begin(self, stream: Stream) -> None:
        """See `Service`."""
        self._streams[stream.headers[_KIND]] = stream
        if (name := _INPUTS.get(stream.headers[_KIND])) is not None:
            self._tasks.append(self._group.create_task(self._read(name)))
        if len(self._streams) == len(self._expected):
            self._settled.set()

    async def receive(self) -> Input | None:
        """See `Wire`. Standard input and sizes are read side by side."""
        return await self._ready.get()

    async def _read(self, name: Literal["stdin", "resize"]) -> None:
        while (data := await self._streams[name].receive()) is not None:
            await self._ready.put(Input(name, data))
        await self._ready.put(Input(name, None))

    async def write(self, stream: Output, data: bytes) -> None:
        """See `Wire`."""
        if stream in self._streams:
            await self._streams[stream].send(data)

    async def finish(self, status: Json) -> None:
        """See `Wire`. Before version 4 there was only a text, and only of failures."""
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
