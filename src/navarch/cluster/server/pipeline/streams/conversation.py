"""A client and a process talk with each other, whatever the wire between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Literal, NamedTuple, Protocol

import msgspec

from navarch.cluster.server.pipeline.streams.outcomes import failed
from navarch.cluster.server.wire.request import Json
from navarch.cluster.streams import ContainerProcess
from navarch.errors import ContainerError

__all__ = ["Input", "Output", "Wire", "converse"]

Output = Literal["stdout", "stderr"]


class Input(NamedTuple):
    """What comes from a client; without data, nothing more will come on that stream."""

    stream: Literal["stdin", "resize"]
    data: bytes | None


class Wire(Protocol):
    """The client's side of a conversation."""

    async def receive(self) -> Input | None:
        """What the client sends; None when it has left."""
        ...

    async def write(self, stream: Output, data: bytes) -> None:
        """Carries output to the client."""
        ...

    async def finish(self, status: Json) -> None:
        """Says how it ended; nothing follows."""
        ...


_Length = Annotated[int, msgspec.Meta(ge=0, lt=2**16)]


class _Size(msgspec.Struct):
    Width: _Length
    Height: _Length


async def converse(
    start: Callable[[], Awaitable[ContainerProcess]], wire: Wire, outcome: Callable[[int], Json]
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


async def _until_over(process: ContainerProcess, wire: Wire) -> int | None:
    """The exit code; None if the client leaves first."""
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(_ended(process, wire))
        feeding = group.create_task(_fed(process, wire))
        await asyncio.wait((ending, feeding), return_when=asyncio.FIRST_COMPLETED)
        feeding.cancel()
        ending.cancel()
    return None if ending.cancelled() else ending.result()


async def _ended(process: ContainerProcess, wire: Wire) -> int:
    """All that it writes is carried before its exit code counts."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_carried(process.stdout(), "stdout", wire))
        group.create_task(_carried(process.stderr(), "stderr", wire))
    return await process.wait()


async def _carried(pieces: AsyncIterator[bytes], stream: Output, wire: Wire) -> None:
    async for piece in pieces:
        await wire.write(stream, piece)


async def _fed(process: ContainerProcess, wire: Wire) -> None:
    while (given := await wire.receive()) is not None:
        if given.stream == "resize":
            await _resize(process, given.data or b"")
        elif given.data is None:
            await process.close_stdin()
        else:
            await process.write(given.data)


async def _resize(process: ContainerProcess, data: bytes) -> None:
    try:
        size = msgspec.json.decode(data, type=_Size)
    except msgspec.DecodeError:
        return
    await process.resize(size.Width, size.Height)
