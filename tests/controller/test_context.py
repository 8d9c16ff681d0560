"""`Context`: what a reconciler can do beside reading and writing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from controller.reaching import KEY, World, gadget
from gadgets import Gadget
from navarch.errors import ClosedError, InvalidValueError


async def test_event_is_about_the_owner_unless_said_otherwise() -> None:
    """Recorded at once, sent by somebody else."""
    world = World()
    ctx = await world.begin()
    ctx.event("Grown", "to 3")
    ctx.event("Failed", "no", type="Warning", regarding=gadget("b"))
    assert world.recorder.events == [("owner", "Grown", "to 3", "Normal"), ("b", "Failed", "no", "Warning")]


async def test_log_says_which_reconcile_it_was_and_why(caplog: pytest.LogCaptureFixture) -> None:
    """Controller, object, id and reasons, on every line."""
    world = World()
    await world.begin()
    ctx = world.context(reasons=("it came", "it was due"), reconcile_id="r1")
    with caplog.at_level(logging.INFO):
        ctx.log.info("grown", size=3)
    fields: Any = vars(caplog.records[0])["fields"]
    assert fields == {
        "controller": "fleet",
        "object": "Fleet default/owner",
        "reconcile_id": "r1",
        "reason": "it came, it was due",
        "size": 3,
    }


async def test_each_reconcile_has_an_id_of_its_own() -> None:
    """Made when it is asked for, and the same from then on."""
    world = World()
    first, second = world.context(), world.context()
    assert first.reconcile_id == first.reconcile_id == first.log.fields["reconcile_id"]
    assert first.reconcile_id != second.reconcile_id


async def test_context_tells_key_reasons_time_and_client() -> None:
    """All of them come from the controller."""
    world = World()
    ctx = world.context(reasons=("it came",))
    assert (ctx.key, ctx.reasons) == (KEY, ("it came",))
    assert ctx.now() == world.clock.now()
    assert ctx.client is world.deps.client


async def test_plain_function_waits_for_the_loop_from_its_thread() -> None:
    """Results and errors come through."""
    world = World()
    ctx = await world.begin()

    def reconcile() -> Any:
        ctx.wait(ctx.apply(gadget(size=1)))
        with pytest.raises(InvalidValueError, match="one namespace"):
            ctx.wait(ctx.get(Gadget, "a", namespace="*"))
        return ctx.wait(ctx.get(Gadget, "a"))

    found = await asyncio.wait_for(asyncio.to_thread(reconcile), 60)
    assert found.spec.size == 1


async def test_waiting_on_the_loop_itself_is_refused() -> None:
    """It would wait for itself; the coroutine is disposed of without a warning."""
    ctx = await World().begin()
    with pytest.raises(InvalidValueError, match="write await"):
        ctx.wait(ctx.get(Gadget, "a"))


async def test_function_that_was_cut_off_can_do_nothing_more() -> None:
    """A thread cannot be stopped, but what it asks for can be refused."""
    world = World()
    ctx = await world.begin()
    ctx.close()

    def reconcile(work: Awaitable[Any]) -> None:
        with pytest.raises(ClosedError, match="Fleet default/owner"):
            ctx.wait(work)

    await asyncio.wait_for(asyncio.to_thread(reconcile, ctx.apply(gadget(size=1))), 60)
    assert world.server.objects(Gadget) == {}
