"""Several replicas of one operator: one works, the others are ready to."""

from __future__ import annotations

import asyncio

from gadgets import Gadget
from navarch.client import MergePatch
from navarch.controller import Context
from navarch.k8s.coordination.v1 import Lease
from navarch.operator import Operator
from operating import World, elected, holder


async def test_standby_takes_over_with_its_cache_at_hand() -> None:
    """One works; when it stops, the other goes on without listing anything again."""
    world, log = World(), list[str]()

    def replica(name: str) -> Operator:
        made = elected()

        @made.controller(Gadget)
        async def reconcile(gadget: Gadget, ctx: Context) -> None:
            log.append(f"{name}: {gadget.name}")

        return made

    await world.create("a")
    async with world.run(replica("first"), client=world.server.client(seed=2)) as first:
        await world.eventually(lambda: log, "the first to work")
        async with world.run(replica("second"), client=world.server.client(seed=3)):
            await world.quiet(20)
            assert log == ["first: a"]
            watched = len(world.watches)
            first.cancel()
            await world.eventually(lambda: log[1:] == ["second: a"], "the second to take over", within=2)
            await world.create("b")
            await world.eventually(lambda: log[2:] == ["second: b"], "the second to work")
    assert [path for path in world.watches[watched:] if "gadgets" in path] == []


async def test_reconcile_that_is_interrupted_by_the_loss_of_the_lease_is_done_again() -> None:
    """When this process leads the next time; also if the reconciler kept the cancellation to itself."""
    world, tested, log = World(), elected(), list[str]()

    @tested.controller(Gadget, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        log.append("begins")
        assert holder(world) != "somebody", "expected nothing to begin while somebody else leads"
        if len(log) == 1:
            await asyncio.Event().wait()
        if len(log) == 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("kept to itself") from None

    async def lose() -> None:
        stolen = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 5}}
        await world.user.patch(Lease, "tested", MergePatch(stolen))

    await world.create()
    async with world.run(tested):
        for count in (1, 2):
            await world.eventually(lambda count=count: len(log) == count, f"reconcile {count}", within=60)  # type: ignore[misc]
            await lose()
        await world.quiet(1)
        assert len(log) == 2
        await world.eventually(lambda: len(log) == 3, "the third reconcile", within=60)
