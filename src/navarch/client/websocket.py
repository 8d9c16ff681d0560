"""WebSockets over aiohttp."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress

import aiohttp
from yarl import URL

from navarch._base.clock import Clock
from navarch.client.transport import Request
from navarch.errors import BadAnswerError, ConnectionLostError

Upgraded = aiohttp.ClientWebSocketResponse | aiohttp.ClientResponse
"""A WebSocket, or the answer of a server that refused one."""

_LARGEST_MESSAGE = 2**24
_CLOSE_SECONDS = 1.0
_FAREWELLS = {0, 1000, 1001, 1005}


class HttpWebSocket:
    """An open WebSocket; see `transport.WebSocket`."""

    def __init__(self, opened: aiohttp.ClientWebSocketResponse, request: Request, clock: Clock) -> None:
        self._opened = opened
        self._clock = clock
        self._call = f"{request.method} {request.path}"
        self._ended = False

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""
        return self._opened.protocol or ""

    async def send(self, data: bytes) -> None:
        """Sends one binary message."""
        try:
            await self._opened.send_bytes(data)
            await self._clock.sleep(0)  # aiohttp does not: a long series would never hear that the other side is gone
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLostError(
                f"{self._call}: expected to send {len(data)} bytes, but the connection is gone"
            ) from error

    async def receive(self) -> bytes | None:
        """Returns the next message; None when the peer has closed."""
        if self._ended:
            return None
        message = await self._opened.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            return bytes(message.data)
        if message.type is aiohttp.WSMsgType.TEXT:
            return str(message.data).encode()
        self._check_farewell(message)
        self._ended = True
        return None

    async def close(self) -> None:
        """Closes the connection. Gives the peer a second to answer: an immediate close would lose the last message."""
        self._ended = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._opened.close()

    def _check_farewell(self, message: aiohttp.WSMessage) -> None:
        """Raises `ConnectionLostError` unless the WebSocket ended with a close frame or with our own `close`."""
        if self._ended or (message.type is aiohttp.WSMsgType.CLOSE and message.data in _FAREWELLS):
            return
        raise ConnectionLostError(f"{self._call}: the WebSocket broke off ({_fault(message)})")


class _RefusedError(Exception):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(response.status)
        self.response = response


async def hand_over_refusal(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A client middleware that keeps the body of a refused handshake, and with it the reason; aiohttp drops it."""
    response = await handler(request)
    if "Sec-WebSocket-Key" in request.headers and response.status != 101:
        await response.read()
        raise _RefusedError(response)
    return response


async def upgrade(
    session: aiohttp.ClientSession,
    request: Request,
    url: URL,
    protocols: Sequence[str],
    *,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | bool,
    server_hostname: str | None,
    proxy: str | None,
) -> Upgraded:
    """Opens a WebSocket; returns the answer of a server that refuses, read whole.

    The session must have `hand_over_refusal` among its middlewares.
    """
    try:
        return await session.ws_connect(
            url,
            protocols=tuple(protocols),
            headers=headers,
            max_msg_size=_LARGEST_MESSAGE,
            ssl=tls,
            server_hostname=server_hostname,
            proxy=proxy,
        )
    except _RefusedError as refused:
        return refused.response
    except aiohttp.WSServerHandshakeError as error:
        raise BadAnswerError(
            f"{request.method} {request.path}: expected the server to switch to a WebSocket, got something else "
            f"({error.message}); check what stands between here and the API server"
        ) from error


def _fault(message: aiohttp.WSMessage) -> str:
    if message.type is aiohttp.WSMsgType.CLOSE:
        return f"closed with code {message.data} {message.extra or ''}".rstrip()
    return str(message.data or "no farewell")
