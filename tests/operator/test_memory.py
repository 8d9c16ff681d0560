"""What a running operator remembers of objects that are gone: nothing."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Iterator
from typing import Any

from gadgets import Gadget
from navarch.api import Key
from navarch.cache import Cache
from navarch.client import Client
from navarch.controller import Context, Permanent, Result, Retry
from navarch.k8s.core.v1 import ConfigMap
from navarch.observe.metrics import LoopMetrics, RequestMetrics
from navarch.operator.process import Process
from operating import World, operator

CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def reachable(root: object) -> Iterator[object]:
    """Everything that an object of ours leads to; what the test itself made, and the server, are left out."""
    known, left = {id(root)}, [root]
    while left:
        found = left.pop()
        yield found
        for each in gc.get_referents(found):
            is_ours = type(each).__module__.startswith("navarch.") and not isinstance(each, (Client, type))
            if id(each) not in known and (is_ours or isinstance(each, CONTAINERS)):
                known.add(id(each))
                left.append(each)


def remembered(root: object) -> list[Key]:
    return [found for found in reachable(root) if isinstance(found, Key) and found.name.startswith("gone-")]


async def test_nothing_is_remembered_of_objects_that_are_gone() -> None:
    """However their last reconcile ended: well, with a timer, with an error, given up, cleaned up, or not fit."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget, owns=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        calls.append(gadget.name)
        await ctx.apply(ConfigMap(name=gadget.name))
        ways: list[Any] = [None, Result(after=5), ValueError("no"), Permanent("no"), Retry("no"), Retry("no", after=5)]
        way = ways[int(gadget.name.partition("-")[2]) % len(ways)]
        if isinstance(way, Exception):
            raise way
        return way  # type: ignore[no-any-return]  # one of the above

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None: ...

    client = world.server.client()
    cache = Cache(client, client.clock, client.rng)
    process = Process(tested, client, cache, RequestMetrics("test"), LoopMetrics())
    names = [f"gone-{number}" for number in range(60)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(cache.run()), group.create_task(process.run())]
        for name in names:
            await world.create(name)
        await world.eventually(lambda: set(calls) == set(names), "all to be reconciled")
        assert remembered(process._controllers)
        for name in names:
            await world.user.delete(Gadget, name)
            await world.user.delete(ConfigMap, name)
        await world.eventually(lambda: not any(map(world.exists, names)), "all to be gone")
        await world.quiet(60)  # what was reconciled within the last minute is counted
        await world.create("stays-0")
        await world.eventually(lambda: calls[-1] == "stays-0", "one more")
        left = remembered(process._controllers)
        for task in tasks:
            task.cancel()
        await world.quiet(1)
    assert left == []
