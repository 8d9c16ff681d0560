"""Objects that are reconciled often: because of what their own reconciler writes, or because of what others do."""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest

from gadgets import Gadget
from navarch.client import MergePatch
from navarch.controller import Context
from navarch.k8s.core.v1 import ConfigMap
from operating import World, operator

OFTEN = 70


async def answer_each(world: World, calls: list[str]) -> None:
    """Somebody changes the ConfigMap after each reconcile, more often than once a second."""
    await world.eventually(lambda: calls, "a first reconcile")
    for number in range(1, OFTEN + 1):
        await world.user.patch(ConfigMap, "a", MergePatch({"metadata": {"annotations": {"answer": f"{number}"}}}))
        await world.eventually(partial(_has_more, calls, number), f"a reconcile after answer {number}")


def _has_more(calls: list[str], known: int) -> bool:
    return len(calls) > known


def warned_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "times within" in record.getMessage()]


async def test_what_it_writes_over_and_over_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """The object and the field, once a minute: others answer to each write, and it writes again."""
    world, tested, calls, stamps = World(), operator(), list[str](), count()

    @tested.controller(Gadget, owns=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        await ctx.apply(ConfigMap(name=gadget.name, data={"stamp": str(next(stamps))}))
        calls.append(gadget.name)

    await world.create()
    async with world.run(tested):
        await answer_each(world, calls)
    (warning,) = warned_of(caplog)
    assert "because of what it had changed itself: ConfigMap default/a (data.stamp)" in warning


async def test_status_that_follows_others_is_no_loop(caplog: pytest.LogCaptureFixture) -> None:
    """It is written as often as they change, but that is not why it is reconciled."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget, owns=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        child = await ctx.apply(ConfigMap(name=gadget.name, data={"a": "b"}))
        gadget.status.phase = child.annotations.get("answer", "")
        calls.append(gadget.name)

    await world.create()
    async with world.run(tested):
        await answer_each(world, calls)
        await world.eventually(lambda: world.status()["phase"] == f"{OFTEN}", "the last answer in the status")
    assert len(world.requests("PUT", "/status")) > OFTEN
    assert not warned_of(caplog)


async def test_what_it_writes_through_the_client_is_named_too(caplog: pytest.LogCaptureFixture) -> None:
    """Such a write calls it by itself: nobody else has to answer. The remedy is in the warning."""
    world, tested, stamps = World(), operator(), count()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        stamp = MergePatch({"metadata": {"annotations": {"stamp": str(next(stamps))}}})
        await ctx.client.patch(Gadget, gadget.name, stamp)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: warned_of(caplog), "a warning")
    assert "because of what it had changed itself: Gadget default/a (by ctx.client" in warned_of(caplog)[0]
    assert "use ctx.apply, ctx.create or ctx.patch" in warned_of(caplog)[0]
