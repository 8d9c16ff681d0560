"""How a running operator is seen from outside: metrics, health, and why it cannot start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from gadgets import Gadget
from navarch.client import Client, Options, Request, Response, WebSocket
from navarch.controller import Context
from navarch.errors import ConnectError
from navarch.operator import Endpoints
from operating import World, elected


class Blind:
    """A server that answers no watch any more, once told so."""

    def __init__(self, world: World) -> None:
        self._server = world.server
        self.origin = world.server.origin
        self.host = world.server.host
        self.is_blind = False

    def client(self) -> Client:
        return Client(self, Options(), clock=self._server._clock)

    async def send(self, request: Request) -> Response:
        if self.is_blind and request.query.get("watch"):
            raise ConnectError("nobody there")
        return await self._server.send(request)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        return await self._server.connect(request, protocols)

    async def close(self) -> None: ...


async def asked(caplog: pytest.LogCaptureFixture, purpose: str, path: str) -> tuple[int, str]:
    """What an endpoint answers; it says in the log where it listens."""
    heard: list[dict[str, str]] = [vars(record).get("fields", {}) for record in caplog.records]
    (address,) = [fields["address"] for fields in heard if fields.get("purpose") == purpose]
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as answer:
        return answer.status, await answer.text()


async def test_metrics_and_health_are_served(caplog: pytest.LogCaptureFixture) -> None:
    """Under the names that dashboards know, and beside them the user's own; readiness fails while a watch is stale."""
    caplog.set_level(logging.INFO)
    own = CollectorRegistry()
    Gauge("gadgets_painted", "How many gadgets have been painted", registry=own).set(7)
    endpoints = Endpoints(health="127.0.0.1:0", metrics="127.0.0.1:0", registry=own)
    world, tested, seen = World(), elected(endpoints=endpoints), list[str]()
    blind = Blind(world)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        seen.append(gadget.name)

    await world.create()
    async with world.run(tested, client=blind.client()):
        await world.eventually(lambda: seen, "a reconcile")
        await world.eventually(lambda: sum("listening" in text for text in caplog.messages) == 2, "both endpoints")
        _, metrics = await asked(caplog, "metrics", "/metrics")
        for expected in (
            'controller_runtime_reconcile_total{controller="gadget",result="success"} 1',
            'workqueue_adds_total{controller="gadget",name="gadget"} 1',
            'leader_election_master_status{name="tested"} 1',
            'rest_client_requests_total{code="200",host="server.example.com:6443",',
            "gadgets_painted 7",
        ):
            assert expected in metrics, metrics
        assert (await asked(caplog, "health", "/readyz"))[0] == 200
        blind.is_blind = True
        world.server.end_watches()
        await world.quiet(90)
        code, text = await asked(caplog, "health", "/readyz")
        assert code == 503
        assert "gadgets.test.example.com has not heard from the server for" in text
        assert (await asked(caplog, "health", "/healthz"))[0] == 200
        blind.is_blind = False
        await world.quiet(60)
        assert (await asked(caplog, "health", "/readyz"))[0] == 200


async def test_address_that_is_taken_keeps_the_operator_from_starting() -> None:
    """It says which, and what was begun is ended."""
    world = World()
    async with asyncio.timeout(30):
        taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = taken.sockets[0].getsockname()[1]
        tested = elected(endpoints=Endpoints(health=f"127.0.0.1:{port}", metrics=None))
        tested.controller(Gadget)(lambda _, __: None)
        with pytest.raises(ExceptionGroup) as raised:
            async with world.run(tested):
                await world.quiet(1000)
        taken.close()
        await taken.wait_closed()
    assert f"127.0.0.1:{port}" in repr(raised.value.exceptions)
    assert world.server.open_watches == 0
