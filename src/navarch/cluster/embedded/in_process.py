"""`InProcessTransport`: the client's transport, and its WebSocket, to a server in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec.structs import replace
from multidict import CIMultiDict

from navarch._base.background import Background
from navarch._base.clock import Clock
from navarch.cluster.server.server import ApiServer
from navarch.cluster.server.wire.byte_pipe import BytePipe
from navarch.cluster.server.wire.request import ApiRequest, Reply, Upgrade
from navarch.errors import ClosedError, ConnectError, ConnectionLostError, DeadlineError


class _ServerSocket:
    """See `Socket`."""

    def __init__(self, coming: BytePipe, going: BytePipe) -> None:
        self._coming = coming
        self._going = going

    async def receive(self) -> bytes | None:
        return await self._coming.get()

    async def send(self, data: bytes) -> None:
        if not await self._going.put(data):
            raise ConnectionResetError("the client has closed the WebSocket")


class InProcessWebSocket:
    """The client's end; see `WebSocket`. The server's end runs while it is open."""

    def __init__(self, upgrade: Upgrade) -> None:
        self.protocol = upgrade.protocol
        self._up, self._down = BytePipe(), BytePipe()
        self._serving = Background()
        self._serving.start(self._serve(upgrade), f"WebSocket for {upgrade.protocol}")

    async def _serve(self, upgrade: Upgrade) -> None:
        try:
            await upgrade.serve(_ServerSocket(self._up, self._down))
        finally:
            self._up.close()
            self._down.close()

    async def send(self, data: bytes) -> None:
        """See `WebSocket`."""
        if not await self._up.put(data):
            raise ConnectionLostError(f"expected to send {len(data)} bytes, but the server has closed the WebSocket")

    async def receive(self) -> bytes | None:
        """See `WebSocket`."""
        return await self._down.get()

    async def close(self) -> None:
        """See `WebSocket`. The server has ended its work then."""
        self._up.close()
        self._down.close()
        await self._serving.stop()


if TYPE_CHECKING:
    from navarch.client import Request, Response, WebSocket


class InProcessTransport:
    """Calls `server` with a bearer token; drops the warnings of replies unless `warned`."""

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
        return InProcessResponse(await self._answer(request, _api_request(request, self._token)))

    async def _answer(self, request: Request, asked: ApiRequest) -> Reply:
        if self._closed:
            raise ClosedError("expected an open client, got one that was closed; use it inside its `async with`")
        # Other tasks get their turn here, as they would at a socket.
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
        asked = _api_request(request, self._token)
        wanted = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-protocol": ", ".join(protocols)}
        reply = await self._answer(request, replace(asked, headers={**asked.headers, **wanted}))
        if reply.upgrade is not None and reply.upgrade.kind == "bytes":
            await reply.upgrade.serve(_ClosedSocket())
            raise ConnectError(
                f"expected a WebSocket at {request.path}, but a proxied connection needs a cluster over HTTPS"
            )
        return InProcessResponse(reply) if reply.upgrade is None else InProcessWebSocket(reply.upgrade)

    async def close(self) -> None:
        """See `Transport`."""
        self._closed = True


def _api_request(request: Request, token: str) -> ApiRequest:
    query = {name: [value] if isinstance(value, str) else list(value) for name, value in request.query.items()}
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers.setdefault("authorization", f"Bearer {token}")
    headers.setdefault("user-agent", "navarch")
    return ApiRequest(
        method=request.method, path=unquote(request.path), query=query, headers=headers, body=request.body or b""
    )


class _ClosedSocket:
    """See `Socket`: the client is gone before it begins."""

    async def receive(self) -> bytes | None:
        return None

    async def send(self, data: bytes) -> None:
        raise ConnectionResetError(f"the client does not read these {len(data)} bytes")


class InProcessResponse:
    """A `Reply` as the client's `Response`."""

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
    """Returns the value of a Warning header; escapes quotes."""
    return '299 - "{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
