"""WebSockets over aiohttp."""

from __future__ import annotations

from dataclasses import replace

import aiohttp

from navarch.client.transport import Request, Response, Transport
from navarch.errors import BadAnswerError, ConnectionLostError

__all__ = ["HttpWebSocket", "refusal"]


class HttpWebSocket:
    """An open WebSocket; see `transport.WebSocket`."""

    def __init__(self, opened: aiohttp.ClientWebSocketResponse) -> None:
        self._opened = opened

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""
        return self._opened.protocol or ""

    async def send(self, data: bytes) -> None:
        """Sends one binary message."""
        try:
            await self._opened.send_bytes(data)
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLostError(f"expected to send {len(data)} bytes, but the connection is gone") from error

    async def receive(self) -> bytes | None:
        """The next message, None when the other side has closed."""
        message = await self._opened.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            return bytes(message.data)
        if message.type is aiohttp.WSMsgType.TEXT:
            return str(message.data).encode()
        if message.type is aiohttp.WSMsgType.ERROR:
            raise ConnectionLostError(f"the WebSocket broke off ({message.data})")
        return None

    async def close(self) -> None:
        """Closes the connection; may be called twice."""
        await self._opened.close()


async def refusal(transport: Transport, request: Request, error: aiohttp.WSServerHandshakeError) -> Response:
    """Why the server would not open the WebSocket.

    aiohttp drops the body of a refused handshake; the same request without the upgrade is refused with the same words.
    """
    response = await transport.send(replace(request, headers={**request.headers, "Accept": "application/json"}))
    if response.status >= 400:
        return response
    await response.close()
    raise BadAnswerError(
        f"{request.method} {request.path}: the server refused the WebSocket with status {error.status}"
    )
