"""Several replicas on one model API server, in one event loop: they can be paused, cut off and lied to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Protocol

from model_server import ModelServer
from navarch._base.clock import ManualClock
from navarch.api.kind import Key
from navarch.client import Client, Request, Response, WebSocket
from navarch.controller.election import Election, ElectionOptions
from navarch.errors import ConnectError, ConnectionLostError
from navarch.k8s.coordination.v1 import Lease

KEY = Key("default", "lock")
LEASE, RETRY = 15.0, 2.0
"""The defaults of an election, in seconds."""


class ReplicaClock:
    """The time as one machine sees it: its own beginning, its own time of day, and none of it while it is paused."""

    def __init__(self, clock: ManualClock, offset: float) -> None:
        self.clock = clock
        self.offset = offset
        self.wrong_by = timedelta()
        self.runs = asyncio.Event()
        self.runs.set()

    def now(self) -> datetime:
        return self.clock.now() + self.wrong_by

    def monotonic(self) -> float:
        return self.clock.monotonic() + self.offset

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        await self.runs.wait()

    @property
    def liveness(self) -> ReplicaClock:
        return self


class Network:
    """The way from one replica to the server. What was sent arrives, even if nobody waits for the answer any more."""

    origin = "a replica's network"
    host = "server.example.com:6443"

    def __init__(self, server: ModelServer, clock: ReplicaClock, group: asyncio.TaskGroup) -> None:
        self._server = server
        self._clock = clock
        self._group = group
        self.connected = asyncio.Event()
        self.connected.set()
        self.latency = 0.01
        self.faults: list[str] = []
        """What happens to the next requests: "refused", "answer lost" or "late"."""
        self.forbidden = False

    async def send(self, request: Request) -> Response:
        if request.query.get("watch"):
            return await self._watched(request)
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "refused":
            raise ConnectError("nobody there")
        latency = 4.0 if fault == "late" else self.latency
        answer = await asyncio.shield(self._group.create_task(self._delivered(request, latency)))
        await self._clock.sleep(self.latency)
        await self.connected.wait()
        await self._clock.runs.wait()
        if fault == "answer lost":
            raise ConnectionLostError("lost")
        return answer

    async def _delivered(self, request: Request, latency: float) -> Response:
        await self.connected.wait()
        await self._clock.clock.sleep(latency)
        return await self._server.send(request)

    async def _watched(self, request: Request) -> Response:
        if self.forbidden:
            return Refused()
        await self.connected.wait()
        return Gated(await self._server.send(request), self)

    async def pass_through(self) -> None:
        """Returns when something that has come can be seen by the replica."""
        await self.connected.wait()
        await self._clock.runs.wait()

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        raise NotImplementedError

    async def close(self) -> None: ...


class Passage(Protocol):
    """What events wait for."""

    async def pass_through(self) -> None: ...


class Gated:
    """A watch whose events wait while the replica is cut off or paused."""

    def __init__(self, inner: Response, network: Passage) -> None:
        self._inner = inner
        self._network = network
        self.status = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.warnings = inner.warnings
        self.read = inner.read
        self.close = inner.close

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            await self._network.pass_through()
            yield chunk


class Refused:
    status = 403
    headers: Mapping[str, str] = {"Content-Type": "application/json"}

    def warnings(self) -> Sequence[str]:
        return ()

    async def read(self) -> bytes:
        return b'{"kind":"Status","apiVersion":"v1","code":403,"reason":"Forbidden","message":"leases: may not watch"}'

    async def chunks(self) -> AsyncIterator[bytes]:
        yield await self.read()

    async def close(self) -> None: ...


class Replica:
    """One candidate with its clock and its network; `terms` says when its led work began and ended."""

    def __init__(self, world: World, name: str, options: Mapping[str, Any]) -> None:
        number = len(world.replicas)
        self.clock = ReplicaClock(world.clock, offset=1000.0 * number)
        self.network = Network(world.server, self.clock, world.group)
        client = Client(self.network, clock=self.clock, rng=random.Random(number))
        chosen = ElectionOptions(name="lock", identity=name, **options)
        self.election = Election(client, chosen, self.clock, random.Random(number))
        self.terms: list[str] = []
        self.farewell_seconds = 0.0
        self._world = world
        self._group = world.group
        self.running: asyncio.Task[None] | None = None
        self.leading: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.running = self._group.create_task(self.election.run())
        self.leading = self._group.create_task(self.election.lead(self._work))

    async def _work(self) -> None:
        self.terms.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            if self.farewell_seconds:
                await self.clock.sleep(self.farewell_seconds)
            self.terms.append("ended")

    def stop(self) -> None:
        """A clean stop: it runs to its end by itself."""
        self.clock.runs.set()
        for task in (self.running, self.leading):
            if task is not None:
                task.cancel()

    def pause(self) -> None:
        """As with SIGSTOP; for ever, it is as with SIGKILL."""
        self.clock.runs.clear()

    def resume(self) -> None:
        self.clock.runs.set()

    def cut_off(self) -> None:
        self.network.connected.clear()

    def reconnect(self) -> None:
        self.network.connected.set()


class World:
    """The server, the time, and who is there."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.clock = ManualClock()
        self.server = ModelServer(Lease, clock=self.clock)
        self.group = group
        self.replicas: list[Replica] = []

    def add(self, name: str, **options: Any) -> Replica:
        replica = Replica(self, name, options)
        self.replicas.append(replica)
        replica.start()
        return replica

    async def leader(self, **options: Any) -> Replica:
        """A first replica, which leads."""
        first = self.add("first", **options)
        await self.until_leads(first, within=1)
        return first

    async def leader_and_standby(self, seconds: float) -> tuple[Replica, Replica]:
        """A first replica, which leads, and a second one, which has stood by for so many seconds."""
        first, second = await self.leader(), self.add("second")
        await self.clock.advance(seconds)
        return first, second

    @property
    def leaders(self) -> list[str]:
        return [replica.election.identity for replica in self.replicas if replica.election.leading]

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.server.objects(Lease)[KEY]["spec"])

    async def until_leads(self, replica: Replica, *, within: float) -> float:
        """Seconds of the clock until the replica leads; fails if it takes longer."""
        began = self.clock.monotonic()
        while not replica.election.leading:
            assert self.clock.monotonic() - began < within, (
                f"expected {replica.election.identity} to lead within {within} s, got {self.leaders or 'nobody'}"
            )
            await self.clock.advance(0.05)
        return self.clock.monotonic() - began


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    """A world that ends with the test: nobody is left running."""
    async with asyncio.TaskGroup() as group:
        made = World(group)
        try:
            yield made
        finally:
            for replica in made.replicas:
                replica.reconnect()
                replica.stop()
            await made.clock.advance(30)
            made.server.end_watches()
