"""A webhook server on loopback, with a certificate of a test CA; what it answers depends on the path."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from certificates import sign

Json = dict[str, Any]
Answering = Callable[[Json], web.Response | None]
"""Makes an answer of a review; None if there is none as long as the server runs."""


class HookServer:
    """Where webhooks are. `reviews` are those it was sent, by path."""

    def __init__(self, answers: dict[str, Answering], bundle: bytes) -> None:
        self.answers = answers
        self.bundle = base64.b64encode(bundle).decode()
        self.reviews: list[tuple[str, Json]] = []
        self.headers: dict[str, str] = {}
        self.url = ""
        self.ending = asyncio.Event()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.reviews.append((str(request.rel_url), review))
        self.headers = dict(request.headers)
        answer = self.answers.get(request.path.strip("/"), saying())(review)
        if answer is None:
            await self.ending.wait()
        return answer or web.Response()


@asynccontextmanager
async def serving(
    folder: Path, answers: dict[str, Answering] | None = None, *, host: str = "127.0.0.1"
) -> AsyncIterator[HookServer]:
    """A running server; `host` is whom its certificate is for."""
    authority = sign("test-ca")
    own = sign("hook", by=authority, host=host)
    (folder / "hook.pem").write_bytes(own.pem)
    (folder / "hook.key").write_bytes(own.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hook.pem", folder / "hook.key")
    server = HookServer(answers or {}, authority.pem)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        server.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        server.ending.set()
        await runner.cleanup()


def answered(review: Json, allowed: bool = True, **more: Any) -> web.Response:
    """An answer with the right uid."""
    response = {"uid": review["request"]["uid"], "allowed": allowed, **more}
    return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


def saying(allowed: bool = True, **more: Any) -> Answering:
    """Always the same answer."""
    return lambda review: answered(review, allowed, **more)


def patching(*operations: Json, **more: Any) -> Answering:
    """Always the same patch."""
    return patching_with(json.dumps(operations).encode(), **more)


def patching_with(patch: bytes, **more: Any) -> Answering:
    """Always the same bytes as patch."""
    return saying(True, patchType="JSONPatch", patch=base64.b64encode(patch).decode(), **more)


def replying(document: Any) -> Answering:
    """Always the same document, whatever uid was asked for."""
    return lambda _: web.json_response(document)


def http(status: int = 200, text: str = "", content_type: str = "text/plain") -> Answering:
    """A bare answer."""
    return lambda _: web.Response(status=status, text=text, content_type=content_type)


def silent(_: Json) -> None:
    """No answer."""
