"""Random histories with random faults: whatever happened, in the end the cache has what the server has.

Each history is a list of steps that hypothesis chooses: writes of others, own writes, faults of the wire, the server
forgetting its past, and time. When it is over the faults stop, and within bounds the collection, and whoever was told
of its changes, must agree with the server. All of it happens in memory and by a clock of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import Phase, given, settings
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
from chaos.ledger import Holding, Ledger, Seen, difference, holding_of, running
from gadgets import CONFIG_MAP
from model_server import ModelServer
from navarch._base.clock import ManualClock
from navarch.api import Dynamic, Key, encode
from navarch.cache import Cache, Collection
from navarch.client import Client, MergePatch, Options, Preconditions
from navarch.errors import Conflict, ConnectionLostError, NotFound

NAMES = ("a", "b", "c")
NAMESPACES = ("x", "y")
PAGE_SIZE = 2
LIMIT_SECONDS = 600.0
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
    writes: int = 0

    def expected(self) -> Holding:
        found = self.server.objects(CONFIG_MAP).items()
        return {each["metadata"]["uid"]: Seen(key, int(each["metadata"]["resourceVersion"])) for key, each in found}

    def complaint(self) -> str | None:
        expected = self.expected()
        return (
            difference(expected, holding_of(self.collection.store), "the collection")
            or difference(expected, self.early.holds, "a subscriber")
            or difference(expected, self.late.holds, "a late subscriber")
        )

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


async def write_of_our_own(key: Key, turns: bool, world: World) -> None:
    """We write, and learn of it at once or after the watch had its turn; reads are never older from then on."""
    read = world.collection.version(key)
    written = await _written(key, world)
    if turns:
        await world.clock.settle()
    world.collection.wrote(encode(written), writer="me", read=read)
    held, version = world.collection.entry(key), int(written.metadata["resourceVersion"])
    assert held is not None, f"expected to read our own write of {key}, got nothing"
    assert held.version >= version, f"expected to read our own write of {key} at {version}, got {held.version}"


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
    """From now on a streamed list takes its time, so that something happens meanwhile."""
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
    st.builds(partial, st.just(write_of_our_own), keys, st.booleans()),
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


async def play(history: list[Step], *, streams_lists: bool) -> None:
    clock = ManualClock()
    server = ModelServer(CONFIG_MAP, clock=clock)
    server.streams_lists = streams_lists
    wire = FaultyTransport(server, clock)
    client = Client(wire, Options(page_size=PAGE_SIZE), clock=clock, rng=random.Random(1))
    cache = Cache(client, clock, random.Random(2))
    world = World(clock, server, wire, server.client(), cache.collection(CONFIG_MAP))
    world.collection.subscribe(world.early)
    async with running(cache.run()):
        for step in history:
            await step(world)
        await until_healed(world)
        await still_alive(world, cache)
        world.collection.unsubscribe(world.early)


async def until_healed(world: World) -> None:
    """Everybody agrees with the server, within bounds."""
    world.wire.heal()
    if world.late not in world.collection._subscribers:
        world.collection.subscribe(world.late)
    limit = world.clock.monotonic() + LIMIT_SECONDS
    while (complaint := world.complaint()) and world.clock.monotonic() < limit:
        await world.clock.advance(5.0)
    assert complaint is None
    assert not world.early.contradictions
    assert not world.late.contradictions


async def still_alive(world: World, cache: Cache) -> None:
    """The watch shows what comes next; nothing is left of what was only waited for."""
    await write(Key("x", "afterwards"), world)
    await world.clock.advance(60.0)
    assert world.complaint() is None
    assert not world.collection._unconfirmed
    assert [informer.error for informer in cache.informers()] == [""]
    assert world.server.open_watches == 1


@given(history=st.lists(steps, max_size=60), streams_lists=st.booleans())
@settings(
    max_examples=max(settings().max_examples, 200), phases=[Phase.explicit, Phase.generate]
)  # a history that fails is short enough to be read as it is
def test_cache_agrees_with_the_server_after_any_history(history: list[Step], streams_lists: bool) -> None:
    """Objects, versions and deletions, in the collection and for whoever is told; reads are never older than own writes."""
    asyncio.run(play(history, streams_lists=streams_lists))
