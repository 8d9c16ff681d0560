"""`faulty`: a client whose requests fail, to test how an operator reacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from navarch.client import Client, Request, Response, Transport, WebSocket
from navarch.client.transport import WrappedTransport
from navarch.errors import NavarchError

Fault = Callable[[Request], NavarchError | None]
"""Returns the error with which a request fails instead of being sent, or None to send it."""


def faulty(client: Client, fault: Fault) -> Client:
    """Returns a client whose requests fail with the error that `fault` returns, as if the server had answered it.

    `fault` is called for every attempt, so also when the client retries (a 503, a broken connection).
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
