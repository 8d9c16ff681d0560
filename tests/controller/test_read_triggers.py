"""What a reconcile has read calls it when it changes."""

from __future__ import annotations

from controller.calls import Calls, settled
from controller.reaching import Fleet
from gadgets import Gadget
from navarch.cache import Cached
from navarch.client import MergePatch
from navarch.controller import Context
from navarch.k8s.core.v1 import ConfigMap
from operating import World, operator


async def test_what_was_listed_is_a_reason_when_it_comes_changes_and_goes() -> None:
    """By labels and namespace, and no other of that kind; without a mapping."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Fleet, reads=(ConfigMap,))
    async def reconcile(fleet: Fleet, ctx: Context) -> None:
        calls.note(ctx)
        await ctx.list(ConfigMap, labels={"app": "fleet", "fleet": fleet.name})

    for name in ("first", "second"):
        await world.user.create(Fleet(name=name))
    async with world.run(tested):
        assert sorted(await settled(world, calls)) == ["first", "second"]
        await world.user.create(ConfigMap(name="mine", labels={"app": "fleet", "fleet": "first"}))
        assert await settled(world, calls) == ["first"]
        await world.user.patch(ConfigMap, "mine", MergePatch({"data": {"k": "1"}}))
        assert await settled(world, calls) == ["first"]
        await world.user.patch(ConfigMap, "mine", MergePatch({"metadata": {"labels": {"fleet": "second"}}}))
        assert sorted(await settled(world, calls)) == ["first", "second"]
        await world.user.delete(ConfigMap, "mine")
        assert await settled(world, calls) == ["second"]
        await world.user.create(ConfigMap(name="nobodys", labels={"app": "fleet"}))
        assert await settled(world, calls) == []


async def test_what_was_not_there_is_a_reason_when_it_comes() -> None:
    """Whoever asked for it by name is called, until a reconcile no longer asks."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Gadget, reads=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)
        if gadget.spec.size != 2:
            await ctx.get(ConfigMap, "settings")

    await world.create()
    async with world.run(tested):
        assert await settled(world, calls) == ["a"]
        await world.user.create(ConfigMap(name="settings"))
        assert await settled(world, calls) == ["a"]
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        assert await settled(world, calls) == ["a"]
        await world.user.delete(ConfigMap, "settings")
        assert await settled(world, calls) == []


async def test_what_was_found_by_an_index_is_a_reason() -> None:
    """Before and after the change."""
    world, tested, calls = World(), operator(), Calls()
    by_size = Cached(ConfigMap, indexes={"fleet": lambda found: [found.data["fleet"]] if found.data else []})

    @tested.controller(Fleet, reads=(by_size,))
    async def reconcile(fleet: Fleet, ctx: Context) -> None:
        calls.note(ctx)
        await ctx.list(ConfigMap, index=("fleet", fleet.name))

    for name in ("first", "second", "third"):
        await world.user.create(Fleet(name=name))
    async with world.run(tested):
        assert sorted(await settled(world, calls)) == ["first", "second", "third"]
        await world.user.create(ConfigMap(name="c", data={"fleet": "first"}))
        assert await settled(world, calls) == ["first"]
        await world.user.patch(ConfigMap, "c", MergePatch({"data": {"fleet": "second"}}))
        assert sorted(await settled(world, calls)) == ["first", "second"]


async def test_own_write_of_what_was_read_is_no_reason() -> None:
    """As of everything else that a reconcile writes."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Fleet, reads=(ConfigMap,))
    async def reconcile(fleet: Fleet, ctx: Context) -> None:
        calls.note(ctx)
        if await ctx.get(ConfigMap, "made") is None:
            await ctx.create(ConfigMap(name="made"), owned=False)

    await world.user.create(Fleet(name="f"))
    async with world.run(tested):
        assert await settled(world, calls) == ["f"]


async def test_kind_in_caches_is_read_from_the_cache_and_triggers_nothing() -> None:
    """`caches` keeps a kind at hand: a read sends no request, and a change of what was read calls no reconciler."""
    world, tested = World(), operator()
    seen: list[int] = []

    @tested.controller(Gadget, caches=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        seen.append(len(await ctx.list(ConfigMap)))

    async with world.run(tested):
        await world.user.create(ConfigMap(name="first", namespace="default"))
        await world.create()
        await world.eventually(lambda: seen, "the first reconcile")
        await world.user.create(ConfigMap(name="second", namespace="default"))
        await world.quiet()
        assert len(seen) == 1
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}), namespace="default")
        await world.eventually(lambda: len(seen) == 2, "the reconcile of the new spec")
    assert seen[-1] == 2
    assert len([path for path in world.watches if path.endswith("/configmaps")]) == 1
