"""An operator that is killed after one of its writes: that is carried out, and nobody hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from deployed import ACCOUNT, NAMESPACE
from navarch.client.transport import Request, Response, Transport, WebSocket
from navarch.errors import ClosedError
from navarch.operator import Operator
from navarch.testing import Cluster


class Mortal:
    """A transport that dies with the last of so many writes; those to events and to other kinds than `of` do not count."""

    def __init__(self, writes: int, of: Sequence[str]) -> None:
        self.left = writes
        self.died = asyncio.Event()
        self._of = frozenset(of)
        self._inner: Transport | None = None

    def around(self, inner: Transport) -> Transport:
        """To be given to `Client.through`."""
        self._inner = inner
        return self

    @property
    def _living(self) -> Transport:
        if self.died.is_set() or self._inner is None:
            raise ClosedError("the operator was killed")
        return self._inner

    @property
    def origin(self) -> str:
        return "a test"

    @property
    def host(self) -> str:
        return "a-test:443"

    async def send(self, request: Request) -> Response:
        response = await self._living.send(request)
        if request.method != "GET" and self._of & set(request.path.split("/")):
            self.left -= 1
            if self.left == 0:
                self.died.set()
                await asyncio.Event().wait()
        return response

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        return await self._living.connect(request, protocols)

    async def close(self) -> None:
        if self._inner is not None:
            await self._inner.close()


@asynccontextmanager
async def killed_with(mortal: Mortal, cluster: Cluster, operator: Operator) -> AsyncIterator[None]:
    """Runs the operator while the block lasts, or until it dies; it has no lease that the next one would wait for."""
    operator.drain_seconds, operator.election = 0.0, None
    client = cluster.client_as(ACCOUNT, namespace=NAMESPACE).through(mortal.around)
    async with Cluster(client, cluster._engine, cluster.access).run(operator):
        yield
