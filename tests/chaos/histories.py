"""Steps of which random histories are made: writes of others, own writes, faults of the wire, the server forgetting
its past, and time. All of it happens in memory and by a clock of its own.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import strategies as st

from chaos.faults import (
    Answered,
    CutInMidObject,
    Delayed,
    Fault,
    FaultyTransport,
    Garbled,
    GoneEvent,
    Matcher,
    Refused,
    Stalled,
    anything,
    lists,
    watches,
)
from chaos.ledger import Holding, Ledger, Seen, difference, holding_of
from gadgets import CONFIG_MAP
from model_server import ModelServer
from model_store import Change as Write
from navarch._base.clock import ManualClock
from navarch.api import Dynamic, Key, Kind, encode
from navarch.cache import Cache, Change, Collection, Namespaces
from navarch.client import Client, MergePatch, Options, Preconditions
from navarch.errors import Conflict, ConnectionLostError, NotFound

NAMES = ("a", "b", "c")
NAMESPACES = ("x", "y")
PAGE_SIZE = 2
NAMESPACE = Kind("", "v1", "Namespace", plural="namespaces", namespaced=False)
STREAM_FAULTS = (CutInMidObject(), CutInMidObject(silent=True), Garbled(), GoneEvent(), Stalled())
REQUEST_FAULTS = (
    *(Answered(code) for code in (401, 403, 404, 410, 500, 503)),
    Answered(429, retry_after=2),
    Refused(),
    Delayed(request=3.0, answer=3.0),
)


@dataclass
class World:
    """A server, a cache of its config maps behind faults, and two who are told of changes: one late."""

    clock: ManualClock
    server: ModelServer
    wire: FaultyTransport
    direct: Client
    collection: Collection[Dynamic]
    early: Ledger = field(default_factory=Ledger)
    late: Ledger = field(default_factory=Ledger)
    unanswered: list[tuple[int, Dynamic]] = field(default_factory=list)
    """Own writes whose answer is still on its way: what was read before, and the answer."""
    read_before: dict[int, int] = field(default_factory=dict)
    """For each own write by its version: which version had been read."""
    relied_on: dict[Key, str] = field(default_factory=dict)
    """The uid of what we wrote last under each key, unless we have deleted it ourselves."""
    swallowed: list[str] = field(default_factory=list)
    """Changes that were told as ours, so that we would not look, although somebody else's lay before."""
    namespaces: Namespaces = field(default_factory=Namespaces)
    writes: int = 0

    def expected(self) -> Holding:
        """What the server has in the namespaces that are kept."""
        found = {key: each["metadata"] for key, each in self.server.objects(CONFIG_MAP).items()}
        return {
            metadata["uid"]: Seen(key, int(metadata["resourceVersion"]))
            for key, metadata in found.items()
            if self.namespaces.match(key.namespace)
        }

    def complaint(self) -> str | None:
        expected = self.expected()
        return (
            difference(expected, holding_of(self.collection.store), "the collection")
            or difference(expected, self.early.holds, "a subscriber")
            or difference(expected, self.late.holds, "a late subscriber")
        )

    def ends_untold(self) -> set[str]:
        """Objects of our own that somebody else deleted without our being told."""
        return set(self.relied_on.values()) - self.expected().keys() - self.early.deleted

    def check_writer(self, change: Change) -> None:
        """What is told as ours must be, and must directly follow what we had read."""
        if change.writer is not None and change.new is not None:
            self.check_follows(change.new.version, f"{change.new!r} was told as ours")

    def check_follows(self, version: int, said: str) -> None:
        """That version is ours, and nothing lies between it and what we had read."""
        [made] = [entry for entry in self.server.store.log if isinstance(entry, Write) and entry.version == version]
        before = int(made.before["metadata"]["resourceVersion"]) if made.before else 0
        if self.read_before.get(version) != before:
            self.swallowed.append(f"{said}, but it follows {before}, and we had read {self.read_before.get(version)}")

    def next_change(self) -> dict[str, Any]:
        self.writes += 1
        return {"data": {"count": str(self.writes)}}


Step = Callable[[World], Awaitable[None]]


async def write(key: Key, world: World) -> None:
    """Somebody creates the object, or changes it."""
    await _written(key, world)


async def _written(key: Key, world: World) -> Dynamic:
    if key in world.server.objects(CONFIG_MAP):
        return await world.direct.patch(CONFIG_MAP, key.name, MergePatch(world.next_change()), namespace=key.namespace)
    new = Dynamic({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name}, **world.next_change()})
    return await world.direct.create(new, namespace=key.namespace)


async def delete(place: int, world: World) -> None:
    """Somebody deletes one of the objects, if there is any."""
    if existing := sorted(world.server.objects(CONFIG_MAP)):
        key = existing[place % len(existing)]
        await world.direct.delete(CONFIG_MAP, key.name, namespace=key.namespace)


async def write_of_our_own(key: Key, world: World) -> None:
    """We write; the answer comes later."""
    read = world.collection.version(key)
    written = await _written(key, world)
    world.read_before[int(written.metadata["resourceVersion"])] = read
    world.unanswered.append((read, written))


async def learn_of_own_writes(world: World) -> None:
    """The answers come; from then on reads are not older, where anything can be read."""
    for read, written in world.unanswered:
        seen = Seen(Key(written.namespace, written.name), int(written.metadata["resourceVersion"]))
        if world.collection.wrote(encode(written), writer="me", read=read):
            world.check_follows(seen.version, f"{seen.key} at {seen.version} was said to have been shown already")
        held = world.collection.entry(seen.key)
        if held is not None and held.uid == written.metadata["uid"]:
            world.relied_on[held.key] = held.uid
        if world.collection.keeps(written.namespace) and seen == world.expected().get(written.metadata["uid"]):
            assert held is not None, f"expected to read our own write of {seen.key}, got nothing"
            assert held.version == seen.version, f"expected to read our own write of {seen.key}, got {held}"
    world.unanswered.clear()


async def delete_of_our_own(place: int, turns: bool, world: World) -> None:
    """We delete what we have read; reads do not find that object any more."""
    known = sorted(world.collection.store, key=lambda entry: entry.key)
    if not known:
        return
    held = known[place % len(known)]
    with contextlib.suppress(NotFound, Conflict):  # either way, that object is gone
        await world.direct.delete(
            CONFIG_MAP, held.key.name, namespace=held.key.namespace, preconditions=Preconditions(uid=held.uid)
        )
    if turns:
        await world.clock.settle()
    world.relied_on.pop(held.key, None)
    world.collection.deleted(held.key, held.uid, writer="me")
    left = world.collection.entry(held.key)
    assert left is None or left.uid != held.uid, f"expected {held.key} to be gone after our own delete, got {left}"


async def compact(world: World) -> None:
    world.server.compact()


async def bookmark(world: World) -> None:
    world.server.bookmark()


async def end_watches(error: bool, world: World) -> None:
    world.server.end_watches(ConnectionLostError("cut") if error else None)


async def withdraw(seconds: float, world: World) -> None:
    """The kind is gone with all of its objects, and comes back."""
    world.server.withdraw(CONFIG_MAP)
    await world.clock.advance(seconds)
    world.server.serve(CONFIG_MAP)


async def inject(fault: Fault, on: Matcher, times: int, world: World) -> None:
    world.wire.inject(fault, on=on, times=times)


async def slow_streams(pace: float, world: World) -> None:
    """From now on a list in one answer takes its time, so that something happens meanwhile."""
    world.wire.pace = pace


async def let_run(seconds: float, world: World) -> None:
    await world.clock.advance(seconds)


async def subscribe_late(world: World) -> None:
    """Begins anew if it had subscribed before."""
    if world.late in world.collection._subscribers:
        world.collection.unsubscribe(world.late)
    world.late = Ledger()
    world.collection.subscribe(world.late)


keys = st.builds(Key, st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
places = st.integers(0, 9)
times = st.integers(1, 4)
traffic = st.one_of(
    st.builds(partial, st.just(write), keys),
    st.builds(partial, st.just(delete), places),
    st.builds(partial, st.just(write_of_our_own), keys),
    st.just(learn_of_own_writes),
    st.builds(partial, st.just(delete_of_our_own), places, st.booleans()),
    st.builds(partial, st.just(let_run), st.sampled_from([0.0, 0.2, 1.0])),
)
trouble = st.one_of(
    st.builds(partial, st.just(let_run), st.sampled_from([5.0, 60.0])),
    st.builds(partial, st.just(inject), st.sampled_from(STREAM_FAULTS), st.just(watches), times),
    st.builds(
        partial, st.just(inject), st.sampled_from(REQUEST_FAULTS), st.sampled_from([watches, lists, anything]), times
    ),
    st.builds(partial, st.just(inject), st.just(Delayed(request=0.2)), st.just(lists), st.just(10)),
    st.builds(partial, st.just(slow_streams), st.sampled_from([0.0, 0.3])),
    st.builds(partial, st.just(end_watches), st.booleans()),
    st.builds(partial, st.just(withdraw), st.sampled_from([0.0, 5.0])),
    st.sampled_from([compact, bookmark, subscribe_late]),
)
steps = st.integers(0, 9).flatmap(lambda chance: trouble if chance < 3 else traffic)


def new_world(namespaces: Namespaces | None = None, *, in_pages: bool = False) -> tuple[World, Cache]:
    """Everything there is, at rest; `namespaces` are those to keep. Lists come in one answer or in pages."""
    clock = ManualClock()
    server = ModelServer(CONFIG_MAP, NAMESPACE, clock=clock)
    wire = FaultyTransport(server, clock)
    cache = Cache(
        Client(wire, Options(page_size=PAGE_SIZE if in_pages else None), clock=clock, rng=random.Random(1)),
        clock,
        random.Random(2),
    )
    kept = namespaces or Namespaces()
    world = World(clock, server, wire, server.client(), cache.collection(CONFIG_MAP, kept), namespaces=kept)
    world.collection.subscribe(world.early)
    world.collection.subscribe(world.check_writer)
    return world, cache
