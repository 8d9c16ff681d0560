"""A server on loopback that speaks the pods' WebSockets from a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import WSMsgType, web

from navarch._base.clock import Clock, SystemClock
from navarch.client import Client, Config, Options, RetryPolicy
from navarch.client.http import HttpTransport

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"

Play = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
End = Literal["close", "error", "break", "silence"]


def status(**fields: Any) -> bytes:
    """A Status on the error channel."""
    return b"\x03" + json.dumps({"metadata": {}, **fields}).encode()


def exited(code: int) -> bytes:
    """The Status of a command that has ended."""
    if code == 0:
        return status(status="Success")
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return status(status="Failure", reason="NonZeroExitCode", message="ended", details={"causes": causes})


@dataclass
class Script:
    """Sends its messages to whoever connects, then ends; keeps what it was sent and how often it was asked.

    It waits for `hears` bytes before it speaks.
    """

    messages: tuple[bytes, ...] = ()
    end: End = "close"
    protocol: str = V5
    hears: int = 0
    queries: list[str] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)
    spoke: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.queries.append(request.query_string)
        socket = web.WebSocketResponse(protocols=(self.protocol,))
        await socket.prepare(request)
        while sum(map(len, self.heard)) < self.hears:
            self.heard.append(await socket.receive_bytes())
        for message in self.messages:
            await socket.send_bytes(message)
        self.spoke.set()
        await self._end(request, socket)
        return socket

    async def _end(self, request: web.BaseRequest, socket: web.WebSocketResponse) -> None:
        if self.end == "break":
            assert request.transport is not None
            request.transport.abort()
        elif self.end == "silence":
            async for message in socket:
                assert message.type is WSMsgType.BINARY
                self.heard.append(message.data)
        else:
            await socket.close(code=1000 if self.end == "close" else 1011)
        self.left.set()


def refuses(code: int, body: str, media_type: str) -> Play:
    """Does not open a WebSocket."""

    async def play(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=code, text=body, content_type=media_type)

    return play


@asynccontextmanager
async def serving(
    play: Play, *, clock: Clock | None = None, seconds: float = 60.0, **config: Any
) -> AsyncIterator[Client]:
    """A client of a server that plays this."""
    runner = web.ServerRunner(web.Server(play), shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        transport = HttpTransport(Config(server=address, **config), SystemClock())
        options = Options(timeout=seconds, retry=RetryPolicy(attempts=3))
        async with Client(transport, options, clock=clock or SystemClock()) as client:
            yield client
    finally:
        await runner.cleanup()
