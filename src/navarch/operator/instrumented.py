"""A transport that counts and traces what goes through it."""

from __future__ import annotations

from collections.abc import Sequence

from navarch.client import Request, Response, Transport, WebSocket
from navarch.errors import NavarchError
from navarch.observe import traces
from navarch.observe.metrics import RequestMetrics

__all__ = ["InstrumentedTransport"]


class InstrumentedTransport:
    """Tells metrics and traces of every request."""

    def __init__(self, transport: Transport, metrics: RequestMetrics) -> None:
        self._transport = transport
        self._metrics = metrics

    @property
    def origin(self) -> str:
        """See `Transport`."""
        return self._transport.origin

    async def send(self, request: Request) -> Response:
        """See `Transport`."""
        with traces.request(request.method, request.path) as span:
            try:
                response = await self._transport.send(request)
            except NavarchError:
                self._metrics.unanswered(request.method)
                raise
            self._metrics.answered(request.method, response.status)
            span.set(code=response.status)
            return response

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport`."""
        return await self._transport.connect(request, protocols)

    async def close(self) -> None:
        """See `Transport`."""
        await self._transport.close()
