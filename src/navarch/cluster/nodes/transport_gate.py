"""`TransportGate`: a transport that can be shut, to cut a node off from its cluster or to freeze it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal

from navarch._base.tasks import unless
from navarch.client import Request, Response, Transport, WebSocket
from navarch.client.transport import WrappedTransport
from navarch.errors import ConnectError, ConnectionLostError

GateState = Literal["open", "cut", "frozen"]


class TransportGate:
    """Passes requests while it is open. While it is cut, requests and streams fail; while it is frozen, they stand
    still.
    """

    def __init__(self) -> None:
        self.state: GateState = "open"
        self._moved = asyncio.Event()

    def set(self, state: GateState) -> None:
        """Sets the state to open, cut or frozen."""
        self.state = state
        self._moved.set()
        self._moved = asyncio.Event()

    async def pass_through(self) -> None:
        """Returns when the gate is open; raises `ConnectError` if it is cut."""
        while self.state == "frozen":
            await self._moved.wait()
        if self.state == "cut":
            raise ConnectError("expected an answer, got none: the node is cut off from the API server")

    async def until_shut(self) -> None:
        """Returns when the gate is no longer open."""
        while self.state == "open":
            await self._moved.wait()

    def around(self, transport: Transport) -> Transport:
        """Returns the transport behind this gate."""
        return _Gated(transport, self)


class _Gated(WrappedTransport):
    def __init__(self, transport: Transport, gate: TransportGate) -> None:
        super().__init__(transport)
        self._gate = gate

    async def send(self, request: Request) -> Response:
        await self._gate.pass_through()
        return _GatedResponse(await self._transport.send(request), self._gate)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        await self._gate.pass_through()
        return await self._transport.connect(request, protocols)


class _GatedResponse:
    def __init__(self, response: Response, gate: TransportGate) -> None:
        self._response = response
        self._gate = gate
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    def warnings(self) -> Sequence[str]:
        return self._response.warnings()

    async def read(self) -> bytes:
        return await self._response.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._response.chunks())
        while True:
            await self._gate_open()
            try:
                piece = await unless(self._gate.until_shut(), _next(chunks))
            except StopAsyncIteration:
                return
            if piece is None:
                raise ConnectionLostError(
                    "expected more of the answer, got none: the node is cut off from the API server"
                )
            yield piece

    async def _gate_open(self) -> None:
        try:
            await self._gate.pass_through()
        except ConnectError as error:
            raise ConnectionLostError(str(error)) from error

    async def close(self) -> None:
        await self._response.close()


async def _next(chunks: AsyncIterator[bytes]) -> bytes:
    return await anext(chunks)
