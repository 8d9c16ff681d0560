"""The transport protocol: the seam between the client and the carrier of its requests.

A transport sends one request and returns one answer. It knows addresses, TLS and credentials; it does not know kinds,
retries or Kubernetes' errors. `HttpTransport` is the one for real clusters; an embedded cluster has its own, which
needs no socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `timeout` bounds the whole exchange in seconds, `idle_timeout` the silence between two chunks.

    `long_lived` marks a watch, a log stream or a WebSocket: those never share a connection, or a limit on connections,
    with other requests, and `timeout` bounds only their opening.
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
    """An answer with an unread body. The receiver reads it whole or closes it."""

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
        """Returns the whole body. Raises `ConnectionLostError` or `DeadlineError`."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives; raises like `read`."""
        ...

    async def close(self) -> None:
        """Closes the connection, whether or not the body was read."""
        ...


@runtime_checkable
class WebSocket(Protocol):
    """An open WebSocket."""

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""
        ...

    async def send(self, data: bytes) -> None:
        """Sends one binary message; waits while the peer accepts no more.

        Raises `ConnectionLostError` when the peer is gone.
        """
        ...

    async def receive(self) -> bytes | None:
        """Returns the next message, text or binary; None when the peer has closed.

        Raises `ConnectionLostError` when the connection ends without a close frame. Unreceived messages stay with the
        sender: a WebSocket buffers only a few.
        """
        ...

    async def close(self) -> None:
        """Closes the connection within about a second; may be called twice, and during a `receive`."""
        ...


class Transport(Protocol):
    """Carries requests to an API server."""

    @property
    def origin(self) -> str:
        """The source of the address and the credential, for errors: "context 'dev' in ~/.kube/config"."""
        ...

    @property
    def host(self) -> str:
        """The API server's host and port, for metrics: "10.0.0.1:443"."""
        ...

    async def send(self, request: Request) -> Response:
        """Sends the request and returns as soon as the status and headers have arrived.

        Raises `ConnectError` if the request was not sent, `ConnectionLostError` or `DeadlineError` if the server may
        have executed it.
        """
        ...

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """Opens a WebSocket with one of the protocols; returns the answer of a server that refuses.

        Raises like `send`, and `BadAnswerError` if the server upgrades to another protocol.
        """
        ...

    async def close(self) -> None:
        """Closes every connection; may be called twice."""
        ...


class WrappedTransport:
    """A transport around another one that forwards every call. Subclasses override methods."""

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
