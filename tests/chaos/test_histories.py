"""Random histories with random faults: whatever happened, in the end the cache has what the server has.

Hypothesis chooses the steps of each history (see `histories.py`). When it is over the faults stop, and within bounds the
collection, and whoever was told of its changes, must agree with the server.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from functools import partial

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from chaos.faults import CutInMidObject, GoneEvent, watches, whole_lists
from chaos.histories import (
    NAMESPACES,
    Step,
    World,
    delete,
    end_watches,
    inject,
    learn_of_own_writes,
    let_run,
    new_world,
    steps,
    subscribe_late,
    withdraw,
    write,
    write_of_our_own,
)
from chaos.ledger import difference, holding_of, running
from example_counts import examples
from navarch.api import Dynamic, Key
from navarch.cache import Cache, Namespaces

LIMIT_SECONDS = 600.0
A = Key("x", "a")
OURS = ("navarch.cache", "navarch.client", "navarch.errors")

# A history that fails is short enough to be read as it is: it is not made smaller, which would take minutes.
thorough = examples(max(settings().max_examples, 200), phases=[Phase.explicit, Phase.generate])


async def play(history: list[Step], *, in_pages: bool) -> None:
    world, cache = new_world(in_pages=in_pages)
    async with running(cache.run()):
        for step in history:
            await step(world)
        await until_healed(world)
        await still_alive(world, cache)


async def until_healed(world: World) -> None:
    """Everybody agrees with the server, within bounds."""
    world.wire.heal()
    await learn_of_own_writes(world)
    if world.late not in world.collection._subscribers:
        world.collection.subscribe(world.late)
    limit = world.clock.monotonic() + LIMIT_SECONDS
    while (complaint := world.complaint()) and world.clock.monotonic() < limit:
        await world.clock.advance(5.0)
    assert complaint is None
    assert not world.early.contradictions
    assert not world.late.contradictions
    assert not world.swallowed
    assert not world.ends_untold()


async def still_alive(world: World, cache: Cache) -> None:
    """The watch shows what comes next; nothing is left of what was only waited for."""
    await write(Key("x", "afterwards"), world)
    await world.clock.advance(60.0)
    assert world.complaint() is None
    assert not world.collection._unconfirmed
    assert [informer.error for informer in cache.informers()] == [""]
    assert world.server.open_watches == 1


@given(history=st.lists(steps, max_size=60), in_pages=st.booleans())
@thorough
@example(  # an own write that somebody deleted before the list that was on its way
    history=[
        partial(let_run, 60.0),
        partial(inject, GoneEvent(), watches, 1),
        partial(write, Key("x", "b")),
        partial(inject, CutInMidObject(), whole_lists, 1),
        partial(let_run, 0.101),
        partial(write_of_our_own, A),
        learn_of_own_writes,
        partial(withdraw, 0.0),
    ],
    in_pages=False,
)
@example(  # somebody who subscribes between an own write and its echo, which never comes
    history=[
        partial(let_run, 60.0),
        partial(end_watches, True),
        partial(write_of_our_own, A),
        learn_of_own_writes,
        subscribe_late,
        partial(withdraw, 5.0),
    ],
    in_pages=True,
)
@example(  # an own write whose answer comes when the watch has already shown the end of the object
    history=[
        partial(let_run, 60.0),
        partial(write_of_our_own, A),
        partial(let_run, 1.0),
        partial(delete, 0),
        partial(let_run, 1.0),
        learn_of_own_writes,
    ],
    in_pages=False,
)
@example(  # an own write that a list shows together with somebody else's before it
    history=[partial(write, A), partial(write_of_our_own, A), partial(let_run, 60.0), learn_of_own_writes],
    in_pages=False,
)
@example(  # an own write that somebody deletes before any watch shows it: we must hear of its end
    history=[
        partial(let_run, 60.0),
        partial(inject, GoneEvent(), watches, 1),
        partial(write_of_our_own, A),
        learn_of_own_writes,
        partial(delete, 0),
    ],
    in_pages=False,
)
def test_cache_agrees_with_the_server_after_any_history(history: list[Step], in_pages: bool) -> None:
    """Objects, versions and deletions, in the collection and for whoever is told.

    Reads are never older than own writes, and no change of somebody else is taken for one of ours.
    """
    asyncio.run(play(history, in_pages=in_pages))


async def keep_other_namespaces(patterns: tuple[str, ...], world: World) -> None:
    world.namespaces.change(*patterns)


async def play_in_namespaces(history: list[Step]) -> None:
    world, cache = new_world(Namespaces("x"))
    for name in NAMESPACES:
        await world.direct.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    async with running(cache.run()):
        for step in history:
            await step(world)
        world.wire.heal()
        await learn_of_own_writes(world)
        limit = world.clock.monotonic() + LIMIT_SECONDS
        await world.clock.advance(5.0)
        while (complaint := in_kept_namespaces(world)) and world.clock.monotonic() < limit:
            await world.clock.advance(5.0)
        assert complaint is None
        await world.clock.advance(120.0)  # a stalled watch is noticed, and shows what is only known by our own writes
        assert not world.collection._unconfirmed


def in_kept_namespaces(world: World) -> str | None:
    """Subscribers are not told when a namespace is let go of, so only the collection is looked at."""
    return difference(world.expected(), holding_of(world.collection.store), "the collection")


patterns = st.sampled_from([(), ("x",), ("y",), ("x", "y"), ("?",), ("*", "!x"), ("z",)])


@given(history=st.lists(st.one_of(steps, st.builds(partial, st.just(keep_other_namespaces), patterns)), max_size=40))
@thorough
def test_cache_follows_the_namespaces_through_any_history(history: list[Step]) -> None:
    """Names and patterns that change at run time; what is kept is what the server has there."""
    asyncio.run(play_in_namespaces(history))


async def test_all_namespaces_are_kept_only_when_they_were_listed() -> None:
    """Before that a read of the cache would find nothing where there is something."""
    world, cache = new_world(Namespaces("x"))
    await write(Key("y", "a"), world)
    assert not world.collection.keeps("x"), "nothing has been listed yet"
    async with running(cache.run()):
        await world.clock.advance(1.0)
        assert (world.collection.keeps("x"), world.collection.keeps("y")) == (True, False)
        world.wire.pace = 5.0
        world.namespaces.change()
        await world.clock.advance(1.0)
        assert (world.collection.keeps("x"), world.collection.keeps("y")) == (False, False)
        await world.clock.advance(60.0)
        assert (world.collection.keeps("x"), world.collection.keeps("y")) == (True, True)
        assert in_kept_namespaces(world) is None


async def test_memory_is_back_after_many_lists(caplog: pytest.LogCaptureFixture) -> None:
    """Each of them compared with what is there: nothing of it adds up."""
    caplog.set_level(logging.CRITICAL, "navarch")  # a record would keep the error that it tells of
    world, cache = new_world()
    for number in range(100):
        await write(Key("x", f"object-{number}"), world)
    async with running(cache.run()):
        await world.clock.advance(1.0)
        await list_anew(world, times=3)
        before = alive(world)
        await list_anew(world, times=30)
        more = alive(world) - before  # what goes meanwhile, of the tests before, is no loss
        assert not more


async def list_anew(world: World, *, times: int) -> None:
    for _ in range(times):
        gone = world.wire.inject(GoneEvent(), on=watches)
        await write(A, world)
        await world.clock.advance(60.0)
        assert gone.struck == 1


def alive(world: World) -> Counter[str]:
    """How many objects of each class of the cache and the client there are, and how many entries."""
    world.server.requests.clear()
    world.wire.requests.clear()
    gc.collect()
    classes = (type(each) for each in gc.get_objects())
    ours = Counter(each.__qualname__ for each in classes if str(each.__module__).startswith(OURS))
    return ours + Counter(entries=len(world.collection.store))
