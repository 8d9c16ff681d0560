"""The seam between the client and whatever carries its requests.

A transport sends one request and hands back one answer. It knows addresses, TLS and credentials; it does not know
kinds, retries or errors of Kubernetes. `HttpTransport` is the one for real clusters; an embedded cluster brings
its own that needs no socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

__all__ = ["Request", "Response", "Transport", "WebSocket"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `timeout` bounds the whole exchange in seconds, `idle_timeout` the silence between two chunks.

    `long_lived` marks a watch, a log stream or a WebSocket: those never share a connection, or a limit on connections,
    with the rest, and `timeout` bounds only their opening.
    """

    method: str
    path: str
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    long_lived: bool = False

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.path}>"


class Response(Protocol):
    """An answer whose body has not been read yet. Whoever gets one reads it whole or closes it."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names compare without regard to case."""
        ...

    def warnings(self) -> Sequence[str]:
        """The values of all `Warning` headers."""
        ...

    async def read(self) -> bytes:
        """The whole body; raises `ConnectionLostError` or `DeadlineError`."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes; raises like `read`."""
        ...

    async def close(self) -> None:
        """Lets go of the connection, whether or not the body was read."""
        ...


@runtime_checkable
class WebSocket(Protocol):
    """An open WebSocket."""

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""
        ...

    async def send(self, data: bytes) -> None:
        """Sends one binary message; waits while the other side takes no more.

        Raises `ConnectionLostError` when the other side is gone.
        """
        ...

    async def receive(self) -> bytes | None:
        """The next message, text or binary; None when the other side has closed.

        Raises `ConnectionLostError` when the connection ends without a goodbye. What is not received stays with the
        sender: a WebSocket holds no more than a few messages.
        """
        ...

    async def close(self) -> None:
        """Closes the connection within a second or so; may be called twice, and while somebody receives."""
        ...


class Transport(Protocol):
    """Carries requests to an API server."""

    @property
    def origin(self) -> str:
        """Where the address and the credential come from, for errors: "context 'dev' in ~/.kube/config"."""
        ...

    @property
    def host(self) -> str:
        """The API server's host and port, for metrics: "10.0.0.1:443"."""
        ...

    async def send(self, request: Request) -> Response:
        """Sends the request and returns as soon as the status and headers are there.

        Raises `ConnectError` if it was never sent, `ConnectionLostError` or `DeadlineError` if its fate is unknown.
        """
        ...

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """Opens a WebSocket with one of the protocols; a server that refuses gives its answer instead.

        Raises like `send`, and `BadAnswerError` if the server upgrades to something else.
        """
        ...

    async def close(self) -> None:
        """Closes every connection; may be called twice."""
        ...


class WrappedTransport:
    """A transport around another one, which passes everything on. Subclasses override what they change."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def origin(self) -> str:
        """See `Transport.origin`."""
        return self._transport.origin

    @property
    def host(self) -> str:
        """See `Transport.host`."""
        return self._transport.host

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        return await self._transport.send(request)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport.connect`."""
        return await self._transport.connect(request, protocols)

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._transport.close()
