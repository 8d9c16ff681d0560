"""The cluster's end of the socket to a shim (`Link`), and the streams of a program in a container (`ShimProcess`)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from navarch.cluster.nodes.runtime import Exit
from navarch.cluster.nodes.shim.program.wire import Inbox, packed
from navarch.cluster.streams import ProcessOptions

_PIECE: Final = 65536


class Link:
    """Sends messages, and passes received ones on; `closed` is set when the shim has closed its end."""

    def __init__(self, end: socket.socket, heard: Callable[[dict[str, Any]], None]) -> None:
        self._end = end
        self._heard = heard
        self._inbox = Inbox()
        self._outbox = bytearray()
        self._loop = asyncio.get_running_loop()
        self.closed = asyncio.Event()
        end.setblocking(False)
        self._loop.add_reader(end.fileno(), self._receive)

    def send(self, message: dict[str, Any]) -> None:
        """Sends the message as soon as the socket has room; does nothing after the end is closed."""
        if self.closed.is_set():
            return
        self._outbox += packed(message)
        self._flush()

    def close(self) -> None:
        """Closes the socket. May be called twice."""
        if not self.closed.is_set():
            self._loop.remove_reader(self._end.fileno())
            self._loop.remove_writer(self._end.fileno())
            self._end.close()
            self.closed.set()

    def _flush(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: self._end.send(self._outbox)]
        except BlockingIOError:
            self._loop.add_writer(self._end.fileno(), self._flush)
            return
        except OSError:
            self.close()
            return
        self._loop.remove_writer(self._end.fileno())

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            messages = self._inbox.receive(self._end)
            if messages is None:
                self.close()
            for message in messages or ():
                self._heard(message)


def close_all(descriptors: list[int]) -> None:
    """Closes the descriptors."""
    for fd in descriptors:
        os.close(fd)


class Pipe:
    """One end of a pipe or a terminal, as a stream of bytes."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        os.set_blocking(fd, False)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the bytes that arrive until either end is closed."""
        while self.fd >= 0:
            try:
                data = os.read(self.fd, _PIECE)
            except BlockingIOError:
                await self._ready(reading=True)
                continue
            except OSError:  # the other end of a terminal is gone
                return
            if not data:
                return
            yield data

    async def write(self, data: bytes) -> None:
        """Writes all bytes; drops them if the reader is gone."""
        while data and self.fd >= 0:
            try:
                data = data[os.write(self.fd, data) :]
            except BlockingIOError:
                await self._ready(reading=False)
            except OSError:
                return

    def close(self) -> None:
        """Closes the descriptor and wakes the waiting readers and writers. May be called twice."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(fd)
            loop.remove_writer(fd)
            for wake in self._waiting:
                wake()
            os.close(fd)

    _waiting: tuple[Callable[[], None], ...] = ()

    async def _ready(self, *, reading: bool) -> None:
        loop, fd = asyncio.get_running_loop(), self.fd
        ready = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        self._waiting = (*self._waiting, wake)
        (loop.add_reader if reading else loop.add_writer)(fd, wake)
        try:
            await ready
        finally:
            self._waiting = tuple(known for known in self._waiting if known is not wake)
            if self.fd == fd:
                (loop.remove_reader if reading else loop.remove_writer)(fd)


class ShimProcess:
    """See `Process`. `streams` are descriptors by name; `end` kills the program."""

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
