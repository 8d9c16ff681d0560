"""Which changes lead to which reconciles."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from controller.reaching import Fleet
from gadgets import Gadget
from navarch.api import Key, ObjectMeta, set_controller
from navarch.cache import Cached, Entry
from navarch.client import MergePatch
from navarch.controller import ByMetadata, Context, Lookup, any_change
from navarch.k8s.core.v1 import ConfigMap
from operating import HOME, World, operator


class Calls(list[tuple[str, tuple[str, ...]]]):
    """The name and the reasons of each reconcile."""

    def note(self, ctx: Context) -> None:
        self.append((ctx.key.name, ctx.reasons))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self]

    def taken(self) -> list[str]:
        """The names so far; forgets them."""
        names = self.names
        self.clear()
        return names


async def settled(world: World, calls: Calls) -> list[str]:
    """Whom the last change led to."""
    await world.quiet(5)
    return calls.taken()


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
    assert calls[1] == ("f", ("ConfigMap default/child came",))


def named_in(settings: ConfigMap, lookup: Lookup) -> Iterable[Key]:
    """The gadgets that a config map names."""
    return [Key(settings.namespace, name) for name in (settings.data or {}).values()]


async def test_mapping_is_asked_for_the_old_and_for_the_new_object() -> None:
    """Whom it concerned before, and whom it concerns now."""
    world, tested, calls = World(), operator(), Calls()

    @tested.controller(Gadget, watches={ConfigMap: named_in})
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    for name in ("a", "b", "c"):
        await world.create(name)
    async with world.run(tested):
        assert sorted(await settled(world, calls)) == ["a", "b", "c"]
        await world.user.create(ConfigMap(name="m", data={"k": "a"}))
        assert await settled(world, calls) == ["a"]
        await world.user.patch(ConfigMap, "m", MergePatch({"data": {"k": "b"}}))
        assert sorted(await settled(world, calls)) == ["a", "b"]
        await world.user.delete(ConfigMap, "m")
        assert await settled(world, calls) == ["b"]


async def test_mapping_can_look_up_what_is_cached() -> None:
    """For example all objects, or those of a label."""
    world, tested, calls = World(), operator(), Calls()

    def everybody(settings: ConfigMap, lookup: Lookup) -> Iterable[Key]:
        return [Key(gadget.namespace, gadget.name) for gadget in lookup.list(Gadget, labels={"team": "x"})]

    @tested.controller(Gadget, watches={ConfigMap: everybody})
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create("a", labels={"team": "x"})
    await world.create("b", labels={"team": "y"})
    async with world.run(tested):
        assert sorted(await settled(world, calls)) == ["a", "b"]
        await world.user.create(ConfigMap(name="m"))
        assert await settled(world, calls) == ["a"]


async def test_mapping_by_metadata_is_given_what_need_not_be_decoded() -> None:
    """Keys, labels and owners are at hand, before and after the change."""
    world, tested, calls = World(), operator(), Calls()

    def labelled(entry: Entry, lookup: Lookup) -> Iterable[Key]:
        return [Key(entry.key.namespace, name) for name in entry.labels]

    @tested.controller(Gadget, watches={ConfigMap: ByMetadata(labelled)})
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create("a")
    await world.create("b")
    async with world.run(tested):
        assert sorted(await settled(world, calls)) == ["a", "b"]
        await world.user.create(ConfigMap(name="m", labels={"a": ""}))
        assert await settled(world, calls) == ["a"]
        await world.user.patch(ConfigMap, "m", MergePatch({"metadata": {"labels": {"a": None, "b": ""}}}))
        assert sorted(await settled(world, calls)) == ["a", "b"]


async def test_mapping_by_metadata_is_asked_again_only_if_that_has_changed() -> None:
    """A version with other labels is asked about, and the one before it; of one with the same, the new one alone."""
    world, tested, calls, asked = World(), operator(), Calls(), list[int]()

    def labelled(entry: Entry, lookup: Lookup) -> Iterable[Key]:
        asked.append(entry.version)
        return [Key(entry.key.namespace, name) for name in entry.labels]

    @tested.controller(Gadget, watches={ConfigMap: ByMetadata(labelled)})
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create("a")
    await world.user.create(ConfigMap(name="m", labels={"a": ""}))
    async with world.run(tested):
        await settled(world, calls)
        asked.clear()
        await world.user.patch(ConfigMap, "m", MergePatch({"data": {"x": "1"}}))
        assert (await settled(world, calls), len(asked)) == (["a"], 1)
        await world.user.patch(ConfigMap, "m", MergePatch({"metadata": {"labels": {"a": None}}}))
        assert (await settled(world, calls), len(asked)) == (["a"], 3)


async def test_nothing_is_mapped_while_there_is_nothing_to_reconcile() -> None:
    """Thousands of others may come and go before the first object does, which is then reconciled for itself."""
    world, tested, calls, asked = World(), operator(), Calls(), list[str]()

    def everything(settings: ConfigMap, lookup: Lookup) -> Iterable[Key]:
        asked.append(settings.name)
        return [Key(HOME, "a")]

    @tested.controller(Gadget, watches={ConfigMap: everything})
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    async with world.run(tested):
        await world.user.create(ConfigMap(name="m"))
        assert (await settled(world, calls), asked) == ([], [])
        await world.create("a")
        assert await settled(world, calls) == ["a"]
        await world.user.create(ConfigMap(name="n"))
        assert (await settled(world, calls), asked) == (["a"], ["n"])


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


@pytest.mark.parametrize("answer", [None, ["a"], [("default", "a")], 7, ValueError("no")], ids=repr)
async def test_mapping_that_fails_harms_nothing(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and later changes are mapped again."""
    world, tested, calls = World(), operator(), Calls()

    def mapping(settings: ConfigMap, lookup: Lookup) -> Iterable[Key]:
        if settings.name == "good":
            return [Key(HOME, "a")]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]  # what is tested

    @tested.controller(Gadget, watches={ConfigMap: mapping})
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note(ctx)

    await world.create()
    async with world.run(tested):
        assert await settled(world, calls) == ["a"]
        await world.user.create(ConfigMap(name="bad"))
        assert await settled(world, calls) == []
        await world.user.create(ConfigMap(name="good"))
        assert await settled(world, calls) == ["a"]
    assert [record.levelno for record in caplog.records if "mapping" in record.getMessage()] == [logging.ERROR]


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
