"""A server on loopback that plays byte-exact answers, good and bad, through real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

_LIMIT_SECONDS = 60.0


@dataclass
class Received:
    """A request as it came; `connection` counts the connections from 0."""

    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    more: asyncio.StreamReader = field(repr=False)

    def header(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known.lower() == name.lower()]


Play = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Faulty:
    """Each request takes the next play of the script; the last one is repeated."""

    script: list[Play]
    requests: list[Received] = field(default_factory=list)
    port: int = 0
    tls: bool = False
    connections: int = 0
    open: int = 0
    all_closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, self.connections, self.open = self.connections, self.connections + 1, self.open + 1
        self.all_closed.clear()
        try:
            while (request := await _read_request(reader, number)) is not None:
                self.requests.append(request)
                play = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                await play(request, writer)
        except (ConnectionError, EndOfPlayError):
            pass
        finally:
            writer.close()
            self.open -= 1
            if not self.open:
                self.all_closed.set()


class EndOfPlayError(Exception):
    """The play has closed its connection."""


async def _read_request(reader: asyncio.StreamReader, number: int) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode().strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    return Received(number, method, target, headers, await reader.readexactly(length), reader)


@contextlib.asynccontextmanager
async def faulty(*script: Play, tls: ssl.SSLContext | None = None) -> AsyncIterator[Faulty]:
    """The server; it is gone, with all of its connections, at the end of the block."""
    played = Faulty(list(script), tls=tls is not None)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await played.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    played.port = server.sockets[0].getsockname()[1]
    try:
        yield played
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await ended(server)


async def ended(server: asyncio.Server) -> None:
    """Closes a server, and returns when nothing is left of its connections, nor of whoever served them.

    Python 3.11 returns at once from a wait that begins after the server was closed.
    """
    async with asyncio.timeout(_LIMIT_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(server.wait_closed())
        await asyncio.sleep(0)  # noqa: TID251 - one turn, so that it waits
        server.close()


def http(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """An answer with a Content-Length, right unless another is given."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    if not any(header.lower().startswith("content-type:") for header in headers):
        lines.append("Content-Type: application/json")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def says(data: bytes) -> Play:
    """Sends these bytes and keeps the connection."""

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return play


def says_json(body: Any, status: str = "200 OK", *headers: str) -> Play:
    return says(http(json.dumps(body).encode(), status, *headers))


def says_and_ends(data: bytes) -> Play:
    """Sends these bytes and closes the connection in good order."""

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        raise EndOfPlayError

    return play


def says_and_resets(data: bytes) -> Play:
    """Sends these bytes and resets the connection."""

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.transport.abort()
        raise EndOfPlayError

    return play


def says_nothing(more: bytes = b"") -> Play:
    """Sends what is given and then stays silent for as long as the connection is open."""

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(more)
        await writer.drain()
        await request.more.read()
        raise EndOfPlayError

    return play


def chunked(*chunks: bytes, end: bool = True) -> bytes:
    """A chunked answer, as watches have it."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)
    return head + body + (b"0\r\n\r\n" if end else b"")
