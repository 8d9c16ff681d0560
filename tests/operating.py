"""Operators on a model API server, by a clock that stands still: for tests of what a running operator does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from controller.reaching import Fleet
from gadgets import Gadget, GadgetSpec
from model_server import ModelServer
from navarch._base.clock import ManualClock, SystemClock
from navarch.api import Key
from navarch.client import Client, Options, Request
from navarch.controller import ElectionOptions
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import ConfigMap, Namespace
from navarch.k8s.events.v1 import Event
from navarch.operator import Operator, serve

HOME = "default"


class PassingClock(SystemClock):
    """The machine's own time, for what happens in threads; `advance` waits a moment."""

    async def advance(self, seconds: float) -> None:
        await self.sleep(min(seconds, 0.005))


def operator(name: str = "tested", **options: Any) -> Operator:
    """An operator that asks the server for nothing before it begins."""
    return Operator(name, **{"crds": "ignore", "election": False, "check_permissions": False, **options})


def elected(name: str = "tested", **options: Any) -> Operator:
    """An operator that works only while it leads."""
    return operator(name, election=ElectionOptions(name=name), **options)


def holder(world: World, name: str = "tested") -> str:
    """Who holds the Lease."""
    found = world.server.objects(Lease).get(Key(HOME, name), {"spec": {}})
    return str(found["spec"].get("holderIdentity") or "")


class World:
    """A server, a user of it, and the time."""

    def __init__(self, clock: ManualClock | PassingClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.server = ModelServer(Gadget, Fleet, ConfigMap, Namespace, Event, Lease, clock=self.clock)
        self.user = self.server.client(Options(manager="user"))

    async def create(self, name: str = "a", namespace: str = HOME, **fields: Any) -> Gadget:
        """A user creates a gadget."""
        spec = fields.pop("spec", GadgetSpec(size=1))
        return await self.user.create(Gadget(name=name, namespace=namespace, spec=spec, **fields))

    def stored(self, name: str = "a", namespace: str = HOME) -> dict[str, Any]:
        """The gadget on the server."""
        return self.server.objects(Gadget)[Key(namespace, name)]

    def status(self, name: str = "a") -> dict[str, Any]:
        """Its status on the server; empty if it has none."""
        return dict(self.stored(name).get("status", {}))

    def exists(self, name: str = "a", namespace: str = HOME) -> bool:
        """Whether there is such a gadget on the server."""
        return Key(namespace, name) in self.server.objects(Gadget)

    @property
    def events(self) -> list[tuple[str, str]]:
        """The reason and the note of each event that was sent."""
        return [(event["reason"], event["note"]) for event in self.server.objects(Event).values()]

    def requests(self, method: str, ending: str = "") -> list[Request]:
        """The requests so far that were no user's."""
        sent = (request for request in self.server.requests if request.query.get("fieldManager") != "user")
        return [request for request in sent if request.method == method and request.path.endswith(ending)]

    @property
    def watches(self) -> list[str]:
        """The paths of all lists with which a watch began."""
        lists = (request for request in self.server.requests if request.query.get("watch") != "true")
        return [request.path for request in lists if request.long_lived]

    @asynccontextmanager
    async def run(self, *operators: Operator, client: Client | None = None) -> AsyncIterator[asyncio.Task[None]]:
        """The operators, running until the end of the block, where they are told to stop."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(serve(client or self.server.client(), *operators))
            try:
                yield task
            finally:
                task.cancel()
                await self.eventually(task.done, "the operators to have stopped", within=120.0)

    async def eventually(self, holds: Callable[[], object], what: str, *, within: float = 30.0) -> None:
        """Returns when it holds; fails after so many seconds of the clock."""
        began = self.clock.monotonic()
        while not holds():
            passed = self.clock.monotonic() - began
            assert passed < within, f"expected {what} within {within:g} s, got {holds()!r}"
            await self.clock.advance(0.05)

    async def quiet(self, seconds: float = 5.0) -> None:
        """Lets so much time pass."""
        until = self.clock.monotonic() + seconds
        while self.clock.monotonic() < until:
            await self.clock.advance(until - self.clock.monotonic())
