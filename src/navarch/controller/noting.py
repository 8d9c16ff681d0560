"""A transport that tells where is written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from navarch.client import Client, Request, Response, Transport
from navarch.client.transport import WrappedTransport

__all__ = ["noted"]

_READS: Final = ("GET", "HEAD")


def noted(client: Client, note: Callable[[str], None]) -> Client:
    """The same client; `note` is told the path of each write before it is sent."""
    noting = client.through(lambda transport: _NotingTransport(transport, note))
    noting.discovery = client.discovery  # what it has asked the server before is not asked again
    return noting


class _NotingTransport(WrappedTransport):
    def __init__(self, transport: Transport, note: Callable[[str], None]) -> None:
        super().__init__(transport)
        self._note = note

    async def send(self, request: Request) -> Response:
        if request.method not in _READS:
            self._note(request.path)
        return await self._transport.send(request)
