"""A transport that counts and traces what goes through it."""

from __future__ import annotations

from navarch.client import Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.errors import NavarchError
from navarch.observe import traces
from navarch.observe.metrics import RequestMetrics

__all__ = ["InstrumentedTransport"]


class InstrumentedTransport(WrappedTransport):
    """Tells metrics and traces of every request."""

    def __init__(self, transport: Transport, metrics: RequestMetrics) -> None:
        super().__init__(transport)
        self._metrics = metrics

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
