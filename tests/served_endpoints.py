"""The endpoints of an operator, served over real sockets and asked as others do."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping

import aiohttp

from navarch._base.clock import ManualClock
from navarch.client import Client
from navarch.observe.metrics import Metrics
from navarch.operator.endpoint_server import EndpointServer, Listening
from navarch.operator.endpoints import Address, Check, Endpoints
from scripted import scripted

__all__ = ["get", "served"]

_LOCAL = Endpoints(health="127.0.0.1:0", metrics="127.0.0.1:0")
_BOUND = 60.0


@contextlib.asynccontextmanager
async def served(
    options: Endpoints = _LOCAL,
    *,
    alive: Mapping[str, Check] | None = None,
    ready: Mapping[str, Check] | None = None,
    metrics: Metrics | None = None,
    client: Client | None = None,
    clock: ManualClock | None = None,
) -> AsyncIterator[Listening]:
    """A server that listens."""
    server = EndpointServer(
        options,
        alive={} if alive is None else alive,
        ready={} if ready is None else ready,
        metrics=metrics or Metrics(),
        client=client or scripted()[0],
        clock=clock or ManualClock(),
    )
    async with asyncio.timeout(_BOUND), asyncio.TaskGroup() as group:
        running = group.create_task(server.run())
        yield await server.listening()
        running.cancel()


async def get(
    address: Address | None,
    path: str,
    headers: Mapping[str, str] | None = None,
    trusted: ssl.SSLContext | None = None,
) -> tuple[int, str]:
    """Status and text of one answer."""
    url = f"{'https' if trusted else 'http'}://{address}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=trusted or True) as response:
        return response.status, await response.text()
