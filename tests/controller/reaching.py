"""What a controller reads from and writes through, on a model server whose watch a test delivers by hand."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gadgets import Gadget, GadgetSpec
from model_server import ModelServer
from model_store import Change as Logged
from model_store import versioned
from navarch._base.clock import Clock
from navarch.api import Key, Kind, Object, Resource, Spec, Status, encode
from navarch.cache import Cached, Change, Collection, as_cached
from navarch.client import Client, Options
from navarch.client.target import Readable, kind_of
from navarch.controller.context import Context
from navarch.controller.deps import ControllerDeps, OnWrite
from navarch.controller.triggers import Version, Writer
from navarch.k8s.core.v1 import ConfigMap
from scripted import LeapingClock

CONTROLLER = "fleet"
KEY = Key("default", "owner")
US = Writer(CONTROLLER, KEY)


class Fleet(Resource[Spec, Status], group="test.example.com", version="v1"):
    """What owns gadgets and config maps."""


def gadget(name: str = "a", **spec: Any) -> Gadget:
    return Gadget(name=name, spec=GadgetSpec(**spec))


def settings(name: str = "a", **data: str) -> ConfigMap:
    return ConfigMap(name=name, data=data)


@dataclass
class Recorded:
    """A recorder that only remembers."""

    events: list[tuple[str, str, str, str]] = field(default_factory=list)

    def record(
        self,
        regarding: Object,
        reason: str,
        note: str,
        *,
        type: str = "Normal",  # noqa: A002 - the API's word
        controller: str = "",
    ) -> None:
        self.events.append((regarding.name, reason, note, type))


class World:
    """A server, an owner on it, and a controller's deps. `deliver` is the watch: nothing comes by itself."""

    def __init__(
        self,
        *declared: Readable[Any] | Cached[Any],
        owned: Sequence[type[Object] | Kind] = (Gadget, ConfigMap),
        transport: Any = None,
        on_write: OnWrite | None = None,
        dry_run: bool = False,
    ) -> None:
        self.clock: Clock = LeapingClock()
        self.server = ModelServer(Fleet, Gadget, ConfigMap, clock=self.clock)
        self.others = self.server.client(Options(manager="others"))
        client = Client(
            transport(self.server) if transport else self.server, Options(manager=CONTROLLER, dry_run=dry_run)
        )
        collections = [Collection(as_cached(what)) for what in declared or (Gadget, ConfigMap)]
        self.changes: list[Change] = []
        self.retracted: list[tuple[Key, Hashable]] = []
        self.recorder = Recorded()
        for collection in collections:
            collection.subscribe(self.changes.append)
        self.deps = ControllerDeps(
            controller=CONTROLLER,
            client=client,
            collections={collection.kind: collection for collection in collections},
            owned=frozenset(kind_of(kind) for kind in owned),
            recorder=cast(Any, self.recorder),
            clock=self.clock,
            retract=lambda key, token: self.retracted.append((key, token)),
            on_write=on_write,
        )
        self.owner = Fleet(name="owner")
        self._delivered = 0

    async def begin(self) -> Context:
        """The owner is created; the context of its reconcile."""
        self.owner = await self.others.create(self.owner)
        return self.context()

    def context(self, **options: Any) -> Context:
        return Context(self.deps, KEY, self.owner, **options)

    def collection(self, what: type[Object]) -> Collection[Any]:
        return self.deps.collections[kind_of(what)]

    def deliver(self, count: int | None = None) -> None:
        """The watch shows the next so many changes, or all of them."""
        log = self.server.store.log
        until = len(log) if count is None else min(self._delivered + count, len(log))
        for logged in log[self._delivered : until]:
            if isinstance(logged, Logged):
                self._show(logged)
        self._delivered = until

    def _show(self, logged: Logged) -> None:
        collection = self.deps.collections.get(logged.kind)
        if collection is None:
            return
        if logged.after is not None:
            collection.saw(collection.cached.entry(encode(logged.after)))
        elif logged.before is not None:
            collection.saw_deleted(collection.cached.entry(encode(versioned(logged.before, logged.version))))

    @property
    def heard(self) -> list[tuple[str, bool]]:
        """The name of each object that changed, and whether that was our own doing; and forgets them."""
        heard = [(change.newest.key.name, change.writer == US) for change in self.changes]
        self.changes.clear()
        return heard

    @property
    def sent(self) -> list[str]:
        """The requests of the controller so far, in short; and forgets them."""
        requests = [request for request in self.server.requests if request.query.get("fieldManager") != "others"]
        self.server.requests.clear()
        return [f"{request.method} {request.path.rpartition('/')[2]}" for request in requests]

    def version(self, what: type[Object], name: str = "a") -> Version:
        """The object's version on the server."""
        key = Key("default", name)
        found = self.server.objects(what)[key]
        return Version(kind_of(what), key, int(found["metadata"]["resourceVersion"]))
