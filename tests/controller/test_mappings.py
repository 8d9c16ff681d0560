"""Whom the change of another kind leads to, where a function says it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from controller.calls import Calls, settled
from gadgets import Gadget
from navarch.api import Key
from navarch.cache import Entry
from navarch.client import MergePatch
from navarch.controller import ByMetadata, Context, Lookup
from navarch.k8s.core.v1 import ConfigMap
from operating import HOME, World, operator


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
