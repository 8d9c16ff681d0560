"""Clients whose requests fail, to see what an operator makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from navarch.client import Client, Request, Response, Transport, WebSocket
from navarch.client.transport import WrappedTransport
from navarch.errors import NavarchError

__all__ = ["Fault", "faulty"]

Fault = Callable[[Request], NavarchError | None]
"""What a request fails with, instead of being sent; None to send it."""


def faulty(client: Client, fault: Fault) -> Client:
    """The same client, whose requests fail with what `fault` gives for them, as if the server had said it.

    It is asked for every attempt: what the client tries again (a 503, a connection that breaks) is asked for anew.
    """
    return client.through(lambda transport: _Faulty(transport, fault))


class _Faulty(WrappedTransport):
    def __init__(self, transport: Transport, fault: Fault) -> None:
        super().__init__(transport)
        self._fault = fault

    async def send(self, request: Request) -> Response:
        self._refuse(request)
        return await self._transport.send(request)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        self._refuse(request)
        return await self._transport.connect(request, protocols)

    def _refuse(self, request: Request) -> None:
        error = self._fault(request)
        if error is not None:
            raise error
