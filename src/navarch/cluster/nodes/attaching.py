"""A client at the streams of a container that is not its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from navarch._base.tasks import unless
from navarch.cluster.streams import ContainerProcess

__all__ = ["Attached"]


class Attached:
    """See `ContainerProcess`: the streams of a container whose input stays open for others. Who has no more input has left it."""

    def __init__(self, process: ContainerProcess) -> None:
        self._process = process
        self._left = asyncio.Event()

    def stdout(self) -> AsyncIterator[bytes]:
        """See `ContainerProcess`."""
        return self._until_left(self._process.stdout())

    def stderr(self) -> AsyncIterator[bytes]:
        """See `ContainerProcess`."""
        return self._until_left(self._process.stderr())

    async def _until_left(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        while (piece := await unless(self._left.wait(), _following(pieces))) is not None:
            yield piece

    async def write(self, data: bytes) -> None:
        """See `ContainerProcess`."""
        await self._process.write(data)

    async def close_stdin(self) -> None:
        """See above."""
        self._left.set()

    async def resize(self, width: int, height: int) -> None:
        """See `ContainerProcess`."""
        await self._process.resize(width, height)

    async def wait(self) -> int:
        """The exit code of the container, 0 for whoever has left."""
        code = await unless(self._left.wait(), self._process.wait())
        return 0 if code is None else code

    async def close(self) -> None:
        """See `ContainerProcess`."""
        await self._process.close()


async def _following(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)
