"""Which changes lead to which reconciles."""

from __future__ import annotations

from typing import Any

import pytest

from controller.calls import Calls, settled
from controller.reaching import Fleet
from gadgets import Gadget
from navarch.api import Key, ObjectMeta, set_controller
from navarch.client import MergePatch
from navarch.controller import Context, any_change
from navarch.k8s.core.v1 import ConfigMap
from operating import HOME, World, operator

CHANGES: dict[str, dict[str, Any]] = {
    "spec": {"spec": {"size": 2}},
    "label": {"metadata": {"labels": {"a": "b"}}},
    "annotation": {"metadata": {"annotations": {"a": "b"}}},
    "finalizer": {"metadata": {"finalizers": ["example.org/f"]}},
}


@pytest.mark.parametrize("what", CHANGES)
async def test_what_is_asked_of_an_object_is_a_reason(what: str) -> None:
    """Its spec, its labels, its annotations, its finalizers."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create()
    async with world.run(tested):
        assert await settled(world, calls) == ["a"]
        await world.user.patch(Gadget, "a", MergePatch(CHANGES[what]))
        assert await settled(world, calls) == ["a"]


async def test_status_alone_is_no_reason() -> None:
    """Whoever wrote it."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create()
    async with world.run(tested):
        assert await settled(world, calls) == ["a"]
        await world.user.patch(Gadget, "a", MergePatch({"status": {"phase": "Theirs"}}), subresource="status")
        assert await settled(world, calls) == []


async def test_deletion_is_a_reason_where_there_is_a_cleanup() -> None:
    """The spec stays the same."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None: ...

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create()
    async with world.run(tested):
        assert await settled(world, calls) == []
        await world.user.delete(Gadget, "a")
        assert await settled(world, calls) == ["a"]


async def test_every_version_is_a_reason_for_kinds_without_generations() -> None:
    """Nothing tells their spec from their status."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(ConfigMap)
    async def reconcile(settings: ConfigMap, ctx: Context) -> None:
        calls.note(ctx)

    await world.user.create(ConfigMap(name="a", data={"k": "1"}))
    async with world.run(tested):
        assert await settled(world, calls) == ["a"]
        await world.user.patch(ConfigMap, "a", MergePatch({"data": {"k": "2"}}))
        assert await settled(world, calls) == ["a"]


async def test_any_change_takes_the_status_too() -> None:
    """But not our own writes of it."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Gadget, when=any_change)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)
        gadget.status.phase = f"Seen {gadget.status.phase}"

    await world.create()
    async with world.run(tested):
        assert await settled(world, calls) == ["a"]
        await world.user.patch(Gadget, "a", MergePatch({"status": {"phase": "Theirs"}}), subresource="status")
        assert await settled(world, calls) == ["a"]
        assert world.status()["phase"] == "Seen Theirs"


async def test_predicate_that_raises_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Rather once too often than not at all would be a guess: it is logged, and others go on."""
    world, tested, calls = World(), operator(), Calls()

    def when(change: Any) -> bool:
        if change.newest.key.name == "bad":
            raise ValueError("no")
        return True

    @tested.controller(Gadget, when=when)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create("bad")
    await world.create("good")
    async with world.run(tested):
        assert await settled(world, calls) == ["good"]
    assert any(record.exc_info for record in caplog.records)


def owned(name: str, owner: Fleet) -> ConfigMap:
    child = ConfigMap(name=name, namespace=HOME)
    set_controller(child, owner)
    return child


async def test_owned_object_triggers_its_owner_the_old_and_the_new() -> None:
    """When it comes, changes, changes hands, and goes."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Fleet, owns=(ConfigMap,))
    async def reconcile(fleet: Fleet, ctx: Context) -> None:
        calls.note(ctx)

    first, second = [await world.user.create(Fleet(name=name)) for name in ("first", "second")]
    async with world.run(tested):
        assert sorted(await settled(world, calls)) == ["first", "second"]
        await world.user.create(owned("child", first))
        assert await settled(world, calls) == ["first"]
        await world.user.patch(ConfigMap, "child", MergePatch({"data": {"k": "1"}}))
        assert await settled(world, calls) == ["first"]
        moved = owned("child", second).metadata.owner_references[0]
        patch = {
            "apiVersion": moved.api_version,
            "kind": moved.kind,
            "name": "second",
            "uid": moved.uid,
            "controller": True,
        }
        await world.user.patch(ConfigMap, "child", MergePatch({"metadata": {"ownerReferences": [patch]}}))
        assert sorted(await settled(world, calls)) == ["first", "second"]
        await world.user.delete(ConfigMap, "child")
        assert await settled(world, calls) == ["second"]
        await world.user.create(ConfigMap(name="nobodys"))
        assert await settled(world, calls) == []


async def test_reasons_say_what_happened() -> None:
    """For the log of the reconcile that they lead to."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Fleet, owns=(ConfigMap,))
    async def reconcile(fleet: Fleet, ctx: Context) -> None:
        calls.note(ctx)

    fleet = await world.user.create(Fleet(name="f"))
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.user.create(owned("child", fleet))
        await world.eventually(lambda: len(calls) == 2, "a reconcile for the child")
    assert calls[1] == ("f", ("ConfigMap default/child was created",))


async def test_object_on_its_way_out_is_reconciled_until_it_is_gone_if_so_declared() -> None:
    """By default it is not."""
    world, tested, patient, default = World(), operator(), Calls(), Calls()

    @tested.controller(Gadget, until_gone=True, name="patient")
    async def until_gone(gadget: Gadget, ctx: Context) -> None:
        patient.note(ctx)

    @tested.controller(Gadget)
    async def until_marked(gadget: Gadget, ctx: Context) -> None:
        default.note(ctx)

    await world.create("a", metadata=ObjectMeta(finalizers=["example.org/f"]))
    async with world.run(tested):
        assert (await settled(world, patient), default.taken()) == (["a"], ["a"])
        await world.user.delete(Gadget, "a")
        assert (await settled(world, patient), default.taken()) == (["a"], [])
        await world.user.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": None}}))
        assert (await settled(world, patient), default.taken()) == ([], [])


async def test_what_was_there_waits_behind_what_happens() -> None:
    """A change made after the start is not kept waiting by thousands that were only listed."""
    world, tested, calls = World(), operator(), Calls()
    gate = world.clock.sleep

    @tested.controller(Gadget, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)
        await gate(1)

    for number in range(10):
        await world.create(f"old-{number}")
    async with world.run(tested):
        await world.eventually(lambda: calls, "the first reconcile")
        await world.create("new")
        await world.eventually(lambda: "new" in calls.names, "the new one")
    assert calls.names.index("new") == 1


async def test_own_write_triggers_other_keys_and_controllers_but_not_its_writer() -> None:
    """A child that two gadgets are mapped from: only the writer leaves its own echo out."""
    world, tested, calls, others = World(), operator(), Calls(), Calls()

    @tested.controller(
        Gadget, owns=(ConfigMap,), watches={ConfigMap: lambda _, lookup: [Key(HOME, "a"), Key(HOME, "b")]}
    )
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)
        if gadget.name == "a":
            await ctx.apply(ConfigMap(name="child", data={"size": str(gadget.spec.size)}))

    @tested.controller(ConfigMap)
    async def look(settings: ConfigMap, ctx: Context) -> None:
        others.note(ctx)

    await world.create("a")
    await world.create("b")
    async with world.run(tested):
        await settled(world, calls)
        others.clear()
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 5}}))
        assert await settled(world, calls) == ["a", "b"]
        assert others.taken() == ["child"]


async def test_trigger_from_outside_reconciles_that_object() -> None:
    """One that is not there is no error; the reason is told."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create()
    async with world.run(tested):
        assert await settled(world, calls) == ["a"]
        reconcile.trigger("a", namespace=HOME, reason="the invoice was paid")
        reconcile.trigger("nobody", namespace=HOME)
        await world.eventually(lambda: calls, "a reconcile")
    assert calls == [("a", ("the invoice was paid",))]
    reconcile.trigger("a", namespace=HOME)
