"""Servers that tenants could name as an endpoint: they keep what they are sent, and can be told how to answer."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

from snapshot_files import a_snapshot

AMBIENT = "ambient-of-the-operator"
"""In every credential that the operator has of its own."""


@dataclass
class Recorder:
    """Knows nothing, and keeps each request: its line and its headers. `held` lets nobody have an answer until it is set."""

    url: str = ""
    requests: list[str] = field(default_factory=list)
    held: asyncio.Event | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.rel_url} {dict(request.headers)}")
        if self.held is not None:
            await self.held.wait()
        return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")


@asynccontextmanager
async def recorder() -> AsyncIterator[Recorder]:
    """Serves while the block lasts."""
    made = Recorder()
    async with _serving(made.answer) as url:
        made.url = url
        try:
            yield made
        finally:
            if made.held is not None:
                made.held.set()


@dataclass
class FakeEtcd:
    """The gateway of a member: it says its cluster, and gives that file as its snapshot; with `error` it refuses to."""

    content: bytes
    cluster_id: int = 0x77
    error: str = ""
    url: str = ""
    snapshots: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/maintenance/status"):
            header = {"cluster_id": str(self.cluster_id), "revision": "7"}
            return web.json_response({"header": header, "version": "3.5.1", "leader": "1"})
        if not request.path.endswith("/maintenance/snapshot"):
            return web.Response(status=404)
        self.snapshots += 1
        if self.error:
            return web.json_response({"code": 2, "message": self.error}, status=500)
        blob = base64.b64encode(self.content).decode()
        return web.Response(text=json.dumps({"result": {"remaining_bytes": "0", "blob": blob}}) + "\n")


@asynccontextmanager
async def fake_etcd(folder: Path, **fields: object) -> AsyncIterator[FakeEtcd]:
    """Serves while the block lasts."""
    path = folder / "of-the-fake.db"
    a_snapshot(path)
    made = FakeEtcd(path.read_bytes())
    for name, value in fields.items():
        setattr(made, name, value)
    async with _serving(made.answer) as url:
        made.url = url
        yield made


@asynccontextmanager
async def _serving(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{name:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@asynccontextmanager
async def connections() -> AsyncIterator[tuple[int, list[str]]]:
    """A port, and who has connected to it, whatever he wanted."""
    seen: list[str] = []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(str(writer.get_extra_info("peername")))
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], seen


def with_checksum(content: bytes) -> bytes:
    """As etcd ends a snapshot: what is wrong with the rest is found only by reading it."""
    return content + hashlib.sha256(content).digest()
