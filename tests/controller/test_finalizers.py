"""A finalizer is there only where a cleanup is, and goes when the cleanup has done its work."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controller.test_status import Interrupted
from election_world import Gated
from gadgets import Gadget
from navarch.client import MergePatch, Request, Response
from navarch.controller import Context, Result
from navarch.controller.reconciliation import Finalizer
from navarch.errors import InvalidValueError
from navarch.operator import Operator
from operating import World, operator

OURS = "test.example.com/tested.gadget"
THEIRS = "example.org/theirs"


def finalizers(world: World, name: str = "a") -> list[str]:
    return list(world.stored(name)["metadata"].get("finalizers", []))


class Fleeting:
    """An operator whose controller has a cleanup, and what was called."""

    def __init__(self) -> None:
        self.operator: Operator = operator()
        self.reconciled: list[str] = []
        self.cleaned: list[str] = []
        self.script: list[Result | Exception | None] = []
        """What the cleanup does the next times; afterwards it is done."""

        @self.operator.controller(Gadget)
        async def reconcile(gadget: Gadget, ctx: Context) -> None:
            self.reconciled.append(gadget.name)

        @reconcile.cleanup
        async def farewell(gadget: Gadget, ctx: Context) -> Result | None:
            self.cleaned.append(gadget.name)
            step = self.script.pop(0) if self.script else None
            if isinstance(step, Exception):
                raise step
            return step


async def test_without_a_cleanup_nothing_is_written_on_the_object() -> None:
    """No finalizer, no annotation, nothing."""
    world, tested = World(), operator()
    calls: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)

    await world.create()
    before = world.stored()
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.quiet(1)
    assert world.stored() == before


async def test_finalizer_is_there_before_the_first_reconcile_and_has_a_name_of_its_own() -> None:
    """Named after the kind's group, the operator and the controller; those of others stay."""
    world, tested = World(), operator()
    seen: list[list[str]] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        seen.append(finalizers(world))
        assert gadget.metadata.finalizers == seen[-1]

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None: ...

    await world.create()
    await world.user.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": [THEIRS]}}))
    async with world.run(tested):
        await world.eventually(lambda: seen, "a reconcile")
        await world.quiet(60)
    assert seen == [[THEIRS, OURS]]


async def test_cleanup_is_called_when_the_object_is_being_deleted_and_lets_it_go() -> None:
    """Once; and the reconciler is not called for it any more."""
    world, fleeting = World(), Fleeting()
    await world.create()
    async with world.run(fleeting.operator):
        await world.eventually(lambda: fleeting.reconciled, "a reconcile")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: not world.exists(), "the object to go")
        await world.quiet(60)
    assert (fleeting.reconciled, fleeting.cleaned) == (["a"], ["a"])


class Behind(Interrupted):
    """A transport whose watches show nothing while they are held."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "nothing", world.user.close)
        self.shows = asyncio.Event()
        self.shows.set()

    async def send(self, request: Request) -> Response:
        answer = await super().send(request)
        return Gated(answer, self) if request.query.get("watch") else answer

    async def pass_through(self) -> None:
        await self.shows.wait()


async def test_object_that_went_with_our_finalizer_is_not_cleaned_up_again() -> None:
    """Although the watch has not shown yet that it is gone."""
    world, fleeting = World(), Fleeting()
    behind = Behind(world)
    fleeting.script = [Result(after=10)]
    await world.create()
    async with world.run(fleeting.operator, client=behind.client()):
        await world.eventually(lambda: fleeting.reconciled, "a reconcile")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: fleeting.cleaned == ["a"], "the first cleanup")
        behind.shows.clear()
        await world.eventually(lambda: not world.exists(), "the object to go")
        fleeting.operator.controllers[0].trigger("a", namespace="default")
        await world.quiet(5)
        behind.shows.set()
    assert fleeting.cleaned == ["a", "a"]


async def test_finalizer_of_others_stays_and_so_does_the_object() -> None:
    """Ours alone goes; nothing more is called for an object on its way out."""
    world, fleeting = World(), Fleeting()
    await world.create()
    await world.user.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": [THEIRS]}}))
    async with world.run(fleeting.operator):
        await world.eventually(lambda: fleeting.reconciled, "a reconcile")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: finalizers(world) == [THEIRS], "our finalizer to go")
        await world.user.patch(Gadget, "a", MergePatch({"metadata": {"labels": {"late": "yes"}}}))
        await world.quiet(60)
    assert (fleeting.reconciled, fleeting.cleaned) == (["a"], ["a"])


async def test_cleanup_that_empties_the_finalizers_of_its_copy_takes_nobodys() -> None:
    """The copy is private: what is done to it is written nowhere."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None: ...

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None:
        gadget.metadata.finalizers.clear()
        gadget.metadata.resource_version = ""

    await world.create()
    await world.user.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": [THEIRS]}}))
    async with world.run(tested):
        await world.eventually(lambda: OURS in finalizers(world), "our finalizer")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: finalizers(world) == [THEIRS], "our finalizer to go, and no other")


async def test_cleanup_that_is_not_done_keeps_the_finalizer() -> None:
    """It comes again after as many seconds as it said."""
    world, fleeting = World(), Fleeting()
    fleeting.script = [Result(after=10), Result(after=10)]
    await world.create()
    async with world.run(fleeting.operator):
        await world.eventually(lambda: fleeting.reconciled, "a reconcile")
        await world.user.delete(Gadget, "a")
        await world.quiet(15)
        assert finalizers(world) == [OURS]
        await world.eventually(lambda: not world.exists(), "the object to go")
    assert fleeting.cleaned == ["a"] * 3


async def test_cleanup_that_raises_is_tried_again() -> None:
    """The object stays until it went well."""
    world, fleeting = World(), Fleeting()
    fleeting.script = [ValueError("the disk is busy"), ValueError("the disk is busy")]
    await world.create()
    async with world.run(fleeting.operator):
        await world.eventually(lambda: fleeting.reconciled, "a reconcile")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: not world.exists(), "the object to go")
    assert fleeting.cleaned == ["a"] * 3


async def test_status_of_an_object_that_goes_can_still_be_written() -> None:
    """So that people see what its deletion waits for."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None: ...

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> Result | None:
        if gadget.status.phase == "Leaving":
            return None
        gadget.status.phase = "Leaving"
        return Result(after=10)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: finalizers(world), "our finalizer")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: world.status().get("phase") == "Leaving", "a status")
        await world.eventually(lambda: not world.exists(), "the object to go")


async def test_objects_being_deleted_are_not_reconciled_without_a_cleanup() -> None:
    """They are held by somebody else's finalizer."""
    world, tested = World(), operator()
    calls: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)

    await world.create()
    await world.user.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": [THEIRS]}}))
    await world.user.delete(Gadget, "a")
    await world.create("b")
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.quiet(60)
    assert calls == ["b"]


async def test_object_that_goes_before_it_had_our_finalizer_goes_without_us() -> None:
    """Nothing was done for it that has to be undone."""
    world, fleeting = World(), Fleeting()

    async def somebody() -> None:
        await world.user.delete(Gadget, "a")

    await world.create()
    async with world.run(fleeting.operator, client=Interrupted(world, "/gadgets/a", somebody).client()):
        await world.eventually(lambda: not world.exists(), "the object to go")
        await world.quiet(60)
    assert (fleeting.reconciled, fleeting.cleaned) == ([], [])


async def test_conflict_while_adding_reconciles_what_the_object_asks_for_now() -> None:
    """The newer spec, under its own generation, with the finalizers of others untouched."""
    world, tested = World(), operator()
    seen: list[tuple[Any, Any]] = []

    @tested.controller(Gadget, when=lambda change: change.old is None)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        seen.append((gadget.spec.size, gadget.metadata.generation))

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None: ...

    async def somebody() -> None:
        patch = MergePatch({"spec": {"size": 7}, "metadata": {"finalizers": [THEIRS]}})
        await world.user.patch(Gadget, "a", patch)

    await world.create()
    async with world.run(tested, client=Interrupted(world, "/gadgets/a", somebody).client()):
        await world.eventually(lambda: seen, "a reconcile")
        await world.quiet(60)
    assert seen == [(7, 2)]
    assert finalizers(world) == [THEIRS, OURS]


async def test_conflict_while_removing_takes_ours_off_the_newer_object() -> None:
    """What somebody added meanwhile stays."""
    world, fleeting = World(), Fleeting()
    await world.create()
    await world.user.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": [THEIRS]}}))
    async with world.run(fleeting.operator):
        await world.eventually(lambda: fleeting.reconciled, "a reconcile")

    async def somebody() -> None:
        await world.user.patch(Gadget, "a", MergePatch({"metadata": {"labels": {"late": "yes"}}}))

    await world.user.delete(Gadget, "a")
    async with world.run(fleeting.operator, client=Interrupted(world, "/gadgets/a", somebody).client()):
        await world.eventually(lambda: finalizers(world) == [THEIRS], "our finalizer to go")
        await world.quiet(1)
    assert fleeting.cleaned == ["a"]
    assert world.stored()["metadata"]["labels"] == {"late": "yes"}


def test_finalizer_that_no_server_would_take_is_refused() -> None:
    """When it is declared, not when the first object comes."""
    with pytest.raises(InvalidValueError, match="finalizer"):
        Finalizer(f"example.com/{'long' * 20}")
