"""Controllers with many children reconcile them in batches."""

from __future__ import annotations

import pytest

from controller.reaching import World, gadget
from gadgets import Gadget
from navarch._base.clock import SystemClock
from navarch.client import MergePatch
from navarch.cluster.controllers.workloads.pod_creation import gathered


@pytest.mark.parametrize(("children", "seconds"), [(None, 0.0), (50, 0.0), (100, 0.01), (1000, 0.1)])
async def test_changes_gather_for_longer_the_more_children_there_are(
    children: int | None, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the work grows with their number alone; with few nobody waits."""
    world = World()
    ctx = await world.begin()
    owner = await world.others.create(gadget(size=1))
    world.deliver()
    slept: list[float] = []

    async def sleep(_: SystemClock, seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    assert await gathered(ctx, owner, children)
    assert sum(slept) == pytest.approx(seconds)


async def test_owner_that_changes_while_changes_gather_is_left_to_the_next_reconcile() -> None:
    """What it asked for before is not acted upon."""
    world = World()
    ctx = await world.begin()
    owner = await world.others.create(gadget(size=1))
    await world.others.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
    world.deliver()
    assert not await gathered(ctx, owner, 1000)
    await world.others.delete(Gadget, "a")
    world.deliver()
    assert not await gathered(ctx, owner, 1000)
