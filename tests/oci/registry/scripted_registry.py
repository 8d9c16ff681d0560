"""A registry whose answers a test decides, through real sockets."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from aiohttp import web

from navarch._base.clock import settle
from navarch.oci.reference import Reference

Play = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Seen(NamedTuple):
    """A request that came."""

    method: str
    path: str
    query: dict[str, str]
    authorization: str
    body: bytes


class ScriptedRegistry:
    """Answers each request with `play`, and keeps what came."""

    def __init__(self, play: Play, *, read_bodies: bool = True) -> None:
        self.play = play
        self._read_bodies = read_bodies
        self.seen: list[Seen] = []
        self.address = ""

    @property
    def name(self) -> Reference:
        """Returns a reference to an image here."""
        return Reference(self.address, "team/app", "v1")

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext | None = None) -> AsyncIterator[Self]:
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, lingering_time=0.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
            self.address = f"127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()
            await settle()  # connections of requests whose body was not read end later

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read() if self._read_bodies else b""
        authorization = request.headers.get("Authorization", "")
        self.seen.append(Seen(request.method, request.path, dict(request.query), authorization, body))
        return await self.play(request)


def answer(
    status: int = 200, body: bytes = b"", *, content_type: str = "application/json", **headers: str
) -> web.Response:
    """Returns an answer; `Docker_Content_Digest=` is the header `Docker-Content-Digest`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=status, body=body, content_type=content_type, headers=named)


def always(response: Callable[[], web.Response]) -> Play:
    """Returns a script with one answer for everything."""

    async def play(_request: web.Request) -> web.Response:
        return response()

    return play


def in_turn(*responses: Callable[[], web.Response]) -> Play:
    """Returns a script that gives these answers, and then the last one for ever."""
    left = list(responses)

    async def play(_request: web.Request) -> web.Response:
        return (left.pop(0) if len(left) > 1 else left[0])()

    return play
