"""A reconciler that asks for the next reconcile at once, for ever."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gadgets import Gadget
from navarch.controller import Backoff, Context, Result, Retry
from operating import World, operator


@pytest.mark.parametrize("way", ["return", "raise"])
async def test_endless_requeue_is_slowed_down(way: str) -> None:
    """Two hundred come at once, for work in steps; after that, ten a second."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result:
        calls.append(gadget.name)
        if way == "raise":
            raise Retry("not yet", after=0)
        return Result(after=0)

    await world.create()
    async with world.run(tested):
        await world.quiet(1)
        assert len(calls) > 150
        await world.quiet(10)
    assert len(calls) < 350


async def test_endless_requeue_is_warned_of_with_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    """Once a minute, with the object and how often."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result:
        return Result(after=0)

    await world.create()
    async with world.run(tested):
        await world.quiet(59)
    (warning,) = [record.getMessage() for record in caplog.records if "times within" in record.getMessage()]
    assert "tested/gadget reconciled default/a" in warning
    assert "because it asked for it with Result(after=0); return a longer delay, or None" in warning


async def test_steps_that_end_are_not_slowed_down(caplog: pytest.LogCaptureFixture) -> None:
    """A hundred steps take no time at all."""
    world, tested, calls = World(), operator(), list[float]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        calls.append(world.clock.monotonic())
        return Result(after=0) if len(calls) < 100 else None

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 100, "a hundred steps")
    assert calls[-1] - calls[0] < 1
    assert not [record for record in caplog.records if "times within" in record.getMessage()]


async def test_controller_has_the_backoff_that_it_declares() -> None:
    """An object that keeps failing is reconciled again after the declared delays: 10 s, 20 s, then 25 s."""
    world, tested, calls = World(), operator(), list[float]()

    @tested.controller(Gadget, backoff=Backoff(initial=10.0, maximum=25.0, jitter=0.0))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(world.clock.monotonic())
        raise ValueError("broken")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 5, "five attempts", within=120.0)
    delays = [round(later - earlier) for earlier, later in pairwise(calls)]
    assert delays == [10, 20, 25, 25]
