"""The client's transport to a server in the same process: no sockets, no copies but what both sides need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec.structs import replace
from multidict import CIMultiDict

from navarch._base.clock import Clock
from navarch.cluster.embedded.sockets import InProcessWebSocket
from navarch.cluster.server.server import ApiServer
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.errors import ClosedError, ConnectError, DeadlineError

if TYPE_CHECKING:
    from navarch.client import Request, Response, WebSocket

__all__ = ["InProcessTransport", "warning_header"]


class InProcessTransport:
    """Carries requests to `server`, with a bearer token for whoever asks; its warnings go to those who want them."""

    def __init__(self, server: ApiServer, token: str, clock: Clock, *, warned: bool = True) -> None:
        self._server = server
        self._token = token
        self._clock = clock
        self._warned = warned
        self._closed = False

    @property
    def origin(self) -> str:
        """See `Transport`."""
        return "the embedded cluster"

    @property
    def host(self) -> str:
        """See `Transport`."""
        return "embedded"

    async def send(self, request: Request) -> Response:
        """See `Transport`. The time limit holds for the answer; a watch may last."""
        return InProcessResponse(await self._answer(request, _asked(request, self._token)))

    async def _answer(self, request: Request, asked: ApiRequest) -> Reply:
        if self._closed:
            raise ClosedError("expected an open client, got one that was closed; use it inside its `async with`")
        # A server in the same process sees the request at once: others get their turn here, as they would at a socket.
        await self._clock.sleep(0)
        try:
            async with asyncio.timeout(request.timeout):
                reply = await self._server.handle(asked)
        except TimeoutError:
            raise DeadlineError(
                f"expected an answer to {request.method} {request.path} within {request.timeout:g} s"
            ) from None
        return reply if self._warned else replace(reply, warnings=[])

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport`."""
        asked = _asked(request, self._token)
        wanted = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-protocol": ", ".join(protocols)}
        reply = await self._answer(request, replace(asked, headers={**asked.headers, **wanted}))
        if reply.upgrade is not None and reply.upgrade.kind == "bytes":
            await reply.upgrade.serve(_NoSocket())
            raise ConnectError(
                f"expected a WebSocket at {request.path}, but what is passed on needs a cluster over HTTPS"
            )
        return InProcessResponse(reply) if reply.upgrade is None else InProcessWebSocket(reply.upgrade)

    async def close(self) -> None:
        """See `Transport`."""
        self._closed = True


def _asked(request: Request, token: str) -> ApiRequest:
    query = {name: [value] if isinstance(value, str) else list(value) for name, value in request.query.items()}
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers.setdefault("authorization", f"Bearer {token}")
    headers.setdefault("user-agent", "navarch")
    return ApiRequest(
        method=request.method, path=unquote(request.path), query=query, headers=headers, body=request.body or b""
    )


class _NoSocket:
    """See `Socket`: the client is gone before it begins."""

    async def receive(self) -> bytes | None:
        return None

    async def send(self, data: bytes) -> None:
        raise ConnectionResetError(f"nobody takes these {len(data)} bytes")


class InProcessResponse:
    """A reply as the client sees it."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status = reply.status
        named = [(name, value) for name, joined in reply.headers.items() for value in joined.split("\n")]
        self.headers: Mapping[str, str] = CIMultiDict([("Content-Type", reply.content_type), *named])

    def warnings(self) -> Sequence[str]:
        """See `Response`."""
        return [warning_header(text) for text in self._reply.warnings]

    async def read(self) -> bytes:
        """See `Response`."""
        if self._reply.stream is None:
            return self._reply.body
        return b"".join([chunk async for chunk in self._reply.stream])

    def chunks(self) -> AsyncIterator[bytes]:
        """See `Response`."""
        return self._reply.stream if self._reply.stream is not None else _once(self._reply.body)

    async def close(self) -> None:
        """See `Response`."""
        stream = self._reply.stream
        if stream is not None and hasattr(stream, "aclose"):
            await stream.aclose()


def warning_header(text: str) -> str:
    """A warning as the value of a header; quotes in it are escaped."""
    return '299 - "{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
