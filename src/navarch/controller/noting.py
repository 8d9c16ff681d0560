"""A transport that tells where is written to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from navarch.client import Client, Request, Response, Transport, WebSocket

__all__ = ["noted"]

_READS: Final = ("GET", "HEAD")


def noted(client: Client, note: Callable[[str], None]) -> Client:
    """The same client; `note` is told the path of each write before it is sent."""
    noting = client.through(lambda transport: _NotingTransport(transport, note))
    noting.discovery = client.discovery  # what it has asked the server before is not asked again
    return noting


class _NotingTransport:
    def __init__(self, transport: Transport, note: Callable[[str], None]) -> None:
        self._transport = transport
        self._note = note

    @property
    def origin(self) -> str:
        return self._transport.origin

    async def send(self, request: Request) -> Response:
        if request.method not in _READS:
            self._note(request.path)
        return await self._transport.send(request)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        return await self._transport.connect(request, protocols)

    async def close(self) -> None:
        await self._transport.close()
