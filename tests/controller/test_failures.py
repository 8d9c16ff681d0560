"""A reconcile or cleanup that keeps failing: what its object shows, and what is said when it is over."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from gadgets import Gadget
from navarch.client import MergePatch
from navarch.controller import Context, Retry
from navarch.k8s.events.v1 import Event
from navarch.observe.rendering import JsonFormatter
from operating import World, operator


def conditions(world: World) -> dict[str, dict[str, Any]]:
    """The conditions of the gadget on the server, by type."""
    return {condition["type"]: condition for condition in world.status().get("conditions", [])}


async def test_reconcile_that_keeps_failing_is_shown_by_a_condition_and_one_event() -> None:
    """As `kubectl describe` prints them; however often it fails, there is one Event with a count."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        raise ValueError("no such colour")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) > 5, "several attempts")
        await world.quiet(20)
        failed = conditions(world)["ReconcileFailed"]
    assert (failed["status"], failed["reason"]) == ("True", "ValueError")
    assert failed["message"] == "ValueError: no such colour"
    (event,) = world.server.objects(Event).values()
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "ReconcileFailed", failed["message"])
    assert event["series"]["count"] == len(calls) - 1
    assert len(world.requests("PUT", "/status")) == 1


async def test_one_failure_leaves_nothing_behind() -> None:
    """It is over before anybody could look."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        if len(calls) == 1:
            raise ValueError("once")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 2, "a second attempt")
        await world.quiet(20)
    assert (conditions(world), world.events) == ({}, [])


async def test_recovery_removes_the_condition_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With the number of failures before it."""
    caplog.set_level("INFO")
    world, tested, calls = World(), operator(), list[int]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.spec.size or 0)
        if gadget.spec.size == 1:
            raise ValueError("too small")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: "ReconcileFailed" in conditions(world), "the condition")
        failures = len(calls)
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        await world.eventually(lambda: conditions(world) == {}, "the condition to be gone")
    (record,) = [record for record in caplog.records if "recovered" in record.getMessage()]
    assert vars(record)["fields"]["failures"] == failures


async def test_cleanup_that_raises_is_shown_on_the_object() -> None:
    """Whoever deleted it sees why it stays."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None: ...

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None:
        raise OSError("the disk is away")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: world.stored()["metadata"].get("finalizers"), "the finalizer")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: "ReconcileFailed" in conditions(world), "the condition")
        await world.eventually(lambda: world.events, "an event")
    assert world.events == [("CleanupFailed", "OSError: the disk is away")]


@pytest.mark.parametrize(
    "error", [lambda number: ValueError(f"attempt {number}"), lambda number: ConnectionError(f"port {number}")]
)
async def test_text_that_changes_with_every_attempt_makes_one_event_a_minute(
    error: Callable[[int], Exception],
) -> None:
    """Otherwise a failing object would fill the namespace with Events."""
    world, tested, attempts = World(), operator(), count()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        raise error(next(attempts))

    await world.create()
    async with world.run(tested):
        await world.quiet(50)
        assert len(world.events) == 1
        await world.quiet(250)
    assert 1 < len(world.events) <= 5


async def test_retry_is_no_failure() -> None:
    """The world is not ready yet; nothing is wrong with the object."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        raise Retry("not yet", after=1)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) > 3, "several attempts")
    assert (conditions(world), world.events) == ({}, [])


async def test_log_of_a_failure_begins_with_the_users_own_code(caplog: pytest.LogCaptureFixture) -> None:
    """`why` is the first field, and the line that raised comes before the runtime's own frames."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        raise ValueError("no such colour")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: caplog.records, "a line of the log")
    line = json.loads(JsonFormatter().format(caplog.records[0]))
    assert list(line)[:5] == ["time", "level", "logger", "event", "why"]
    assert line["why"] == "ValueError: no such colour"
    traceback = line["exception"]
    assert traceback.index("in reconcile\n") < traceback.index("ValueError: no such") < traceback.index("in _attempt\n")
