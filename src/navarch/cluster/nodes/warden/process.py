"""A program inside a container, with its streams in our hands."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping

from navarch.cluster.nodes.runtime import Exit
from navarch.cluster.nodes.warden.pipes import Pipe
from navarch.cluster.streams import ProcessOptions

__all__ = ["WardenProcess"]


class WardenProcess:
    """See `Process`. `streams` are descriptors by name; `end` ends the program."""

    def __init__(
        self,
        streams: Mapping[str, int],
        ended: asyncio.Future[Exit],
        end: Callable[[], None],
        options: ProcessOptions,
    ) -> None:
        self._pipes = {name: Pipe(fd) for name, fd in streams.items()}
        self._ended = ended
        self._end = end
        self._tty = options.tty

    def stdout(self) -> AsyncIterator[bytes]:
        """See `Process`."""
        return self._pieces("stdout")

    def stderr(self) -> AsyncIterator[bytes]:
        """See `Process`."""
        return self._pieces("stderr")

    async def _pieces(self, name: str) -> AsyncIterator[bytes]:
        if name in self._pipes:
            async for piece in self._pipes[name].pieces():
                yield piece

    async def write(self, data: bytes) -> None:
        """See `Process`."""
        if "stdin" in self._pipes:
            await self._pipes["stdin"].write(data)

    async def close_stdin(self) -> None:
        """See `Process`. A terminal is told by the character for it."""
        if self._tty:
            await self.write(b"\x04")
        elif "stdin" in self._pipes:
            self._pipes["stdin"].close()

    async def resize(self, width: int, height: int) -> None:
        """See `Process`."""
        terminal = self._pipes.get("stdin") if self._tty else None
        if terminal is not None and terminal.fd >= 0:
            with contextlib.suppress(OSError):
                fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def wait(self) -> int:
        """See `Process`."""
        return (await asyncio.shield(self._ended)).code

    async def close(self) -> None:
        """See `Process`."""
        self._end()
        for pipe in self._pipes.values():
            pipe.close()
