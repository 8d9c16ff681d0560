"""`ctx.apply_all`: every child that is wanted, and no other."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from controller.reaching import Fleet, World, gadget, settings
from gadgets import Gadget
from navarch._base.clock import SystemClock
from navarch._base.tasks import gather_all
from navarch.api import Object, set_controller
from navarch.client import Request, Response
from navarch.errors import Conflict, Invalid, InvalidValueError
from navarch.k8s.core.v1 import ConfigMap, Secret


def names(world: World, what: type[Object]) -> list[str]:
    return sorted(key.name for key in world.server.objects(what))


async def test_wanted_children_are_applied_and_others_deleted() -> None:
    """The results come in the order of the wishes; a second time nothing is sent."""
    world = World()
    ctx = await world.begin()
    applied = await ctx.apply_all([gadget("a"), gadget("b"), settings("c")])
    assert [each.name for each in applied] == ["a", "b", "c"]
    world.sent.clear()
    await ctx.apply_all([gadget("a"), gadget("b"), settings("c")])
    assert world.sent == []
    await ctx.apply_all([gadget("b")])
    assert (names(world, Gadget), names(world, ConfigMap)) == (["b"], [])
    assert sorted(world.sent) == ["DELETE a", "DELETE c"]
    await ctx.apply_all([])
    assert names(world, Gadget) == []
    world.deliver()
    assert all(own for _, own in world.heard)


async def test_only_what_the_owner_controls_is_deleted() -> None:
    """Not what nobody, somebody else, or an earlier owner of that name controls; not what is on its way out."""
    world = World()
    ctx = await world.begin()
    await world.others.create(gadget("free"))
    other = await world.others.create(Fleet(name="other"))
    theirs = gadget("theirs")
    set_controller(theirs, other)
    await world.others.create(theirs)
    shared = gadget("shared")
    set_controller(shared, world.owner)
    shared.metadata.owner_references[0].controller = False
    await world.others.create(shared)
    going = gadget("going")
    going.metadata.finalizers = ["example.com/wait"]
    await ctx.create(going)
    await world.others.delete(Gadget, "going")
    world.deliver()
    world.sent.clear()
    await ctx.apply_all([])
    assert names(world, Gadget) == ["free", "going", "shared", "theirs"]
    assert world.sent == []


async def test_child_that_was_replaced_by_another_object_is_left_alone() -> None:
    """The uid decides, and it is no error."""
    world = World()
    ctx = await world.begin()
    await ctx.apply_all([gadget("a")])
    await world.others.delete(Gadget, "a")
    await world.others.create(gadget("a"))
    await ctx.apply_all([])
    assert names(world, Gadget) == ["a"]


async def test_pruning_can_be_limited_or_left_out() -> None:
    """To some kinds, or altogether; then kinds that are not declared may be applied."""
    world = World(owned=(Gadget,))
    ctx = await world.begin()
    await ctx.apply_all([gadget("a"), settings("b")], prune=False)
    await ctx.apply_all([settings("b")], prune=(Gadget,))
    assert (names(world, Gadget), names(world, ConfigMap)) == ([], ["b"])


async def test_what_could_not_be_pruned_is_refused_with_the_remedy() -> None:
    """Before anything is sent."""
    world = World(owned=(Gadget,))
    ctx = await world.begin()
    world.sent.clear()
    with pytest.raises(InvalidValueError, match=r"owns=\(ConfigMap"):
        await ctx.apply_all([gadget("a"), settings("b")])
    with pytest.raises(InvalidValueError, match=r"owns=\(Secret"):
        await ctx.apply_all([gadget("a")], prune=(Secret,))
    with pytest.raises(InvalidValueError, match="default/a twice"):
        await ctx.apply_all([gadget("a"), gadget("a")])
    assert world.sent == []


class Refusing:
    """A transport that says no to some objects."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.origin = server.origin
        self.host = server.host
        self.connect = server.connect
        self.close = server.close

    async def send(self, request: Request) -> Response:
        if request.path.endswith(("/bad", "/worse")):
            raise Invalid(f"apply {request.path[-5:]}: no", code=422)
        answer: Response = await self.server.send(request)
        return answer


async def test_failure_of_one_stops_neither_the_others_nor_is_anything_deleted() -> None:
    """The first error is raised, with the others in its text."""
    world = World(transport=Refusing)
    ctx = await world.begin()
    await ctx.apply_all([gadget("old")])
    with pytest.raises(Invalid) as caught:
        await ctx.apply_all([gadget("a"), gadget("bad"), gadget("b"), gadget("worse")])
    assert str(caught.value) == "apply s/bad: no (and 1 more of 4 failed: apply worse: no)"
    assert names(world, Gadget) == ["a", "b", "old"]


async def test_deletions_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """What disappears has to be explained."""
    caplog.set_level("INFO")
    world = World()
    ctx = await world.begin()
    await ctx.apply_all([gadget("a")])
    await ctx.apply_all([])
    assert [
        record.__dict__["fields"]["child"] for record in caplog.records if "no longer wanted" in record.message
    ] == ["gadgets.test.example.com default/a"]


async def test_work_is_bounded_and_keeps_its_order() -> None:
    """Never more than so many at once."""
    running, most = 0, 0

    async def job(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(10 - number):
            await SystemClock().sleep(0)
        running -= 1
        return number

    results = await gather_all([partial(job, number) for number in range(10)], at_once=3)
    assert (results, most) == (list(range(10)), 3)


async def test_single_failure_is_raised_as_it_is() -> None:
    """Its text is its own."""

    async def fail() -> None:
        raise Conflict("changed", code=409)

    async def succeed() -> None: ...

    with pytest.raises(Conflict, match=r"^changed$"):
        await gather_all([succeed, fail], at_once=1)
