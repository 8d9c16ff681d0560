"""A running operator: what it watches, how it stops, and what runs beside its controllers."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import pytest

from controller.reaching import Fleet
from gadgets import Gadget
from navarch.client import Client, MergePatch
from navarch.controller import Context, Result
from navarch.errors import NotLeaderError
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import ConfigMap, Namespace
from operating import HOME, PassingClock, World, elected, holder, operator

# What is watched


async def test_each_kind_is_watched_once_by_all_controllers() -> None:
    """However many own, read and watch it."""
    world, tested = World(), operator()

    @tested.controller(Fleet, owns=(Gadget, ConfigMap))
    async def fleet(fleet: Fleet, ctx: Context) -> None: ...

    @tested.controller(Gadget, reads=(ConfigMap,), watches={Fleet: lambda fleet, lookup: []})
    async def gadget(gadget: Gadget, ctx: Context) -> None: ...

    async with world.run(tested):
        await world.quiet(5)
        assert sorted(world.watches) == [
            "/api/v1/configmaps",
            "/apis/test.example.com/v1/fleets",
            "/apis/test.example.com/v1/gadgets",
        ]


async def test_operators_of_one_process_work_side_by_side() -> None:
    """Each with its own controllers, on one client; one watchdog has an eye on their event loop."""
    world, one, other, seen = World(), operator("one"), operator("other"), set[str]()

    @one.controller(Gadget)
    async def first(gadget: Gadget, ctx: Context) -> None:
        seen.add("one")

    @other.controller(Gadget)
    async def second(gadget: Gadget, ctx: Context) -> None:
        seen.add("other")

    await world.create()
    async with world.run(one, other):
        await world.eventually(lambda: seen == {"one", "other"}, "both operators to work")
        assert world.watches == ["/apis/test.example.com/v1/gadgets"]
        assert [thread.name for thread in threading.enumerate()].count("navarch-pulse") == 1


async def test_operators_that_share_a_watch_mean_their_own_namespaces() -> None:
    """What one of them drops, and takes up again, is nothing to the other."""
    world, log = World(), list[str]()
    one, other = operator("one", namespaces=("x", "y")), operator("other", namespaces=("x", "y"))
    for each in (one, other):

        @each.controller(Gadget)
        async def reconcile(gadget: Gadget, ctx: Context, name: str = each.name) -> None:
            log.append(f"{name}: {ctx.key}")

    def taken() -> set[str]:
        found = set(log)
        log.clear()
        return found

    for namespace in ("x", "y"):
        await world.create("a", namespace)
    async with world.run(one, other):
        await world.quiet(1)
        assert taken() == {"one: x/a", "one: y/a", "other: x/a", "other: y/a"}
        one.namespaces.change("x")
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}), namespace="y")
        await world.quiet(1)
        assert taken() == {"other: y/a"}
        one.namespaces.change("x", "y")
        await world.quiet(1)
        assert taken() == {"one: y/a"}
        assert len(world.watches) == 2
        other.namespaces.change("x")
        one.namespaces.change("x")
        await world.quiet(1)
        assert world.server.open_watches == 1


async def test_only_declared_namespaces_are_watched_and_reconciled() -> None:
    """By name: nobody has to be allowed to list namespaces."""
    world, tested, seen = World(), operator(namespaces=("x", "y")), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        seen.append(str(ctx.key))

    for namespace in ("x", "y", "z"):
        await world.create("a", namespace)
    async with world.run(tested):
        await world.quiet(5)
        assert sorted(seen) == ["x/a", "y/a"]
        assert {path.split("/")[-2] for path in world.watches} == {"x", "y"}


async def test_namespaces_of_a_pattern_are_followed_as_they_come_and_go() -> None:
    """Those that come later too."""
    world, tested, seen = World(), operator(namespaces=("team-*", "!team-x")), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        seen.append(str(ctx.key))

    for namespace in ("team-a", "team-x", "other"):
        await world.user.create(Namespace(name=namespace))
        await world.create("g", namespace)
    async with world.run(tested):
        await world.eventually(lambda: seen == ["team-a/g"], "the gadget of the team")
        await world.user.create(Namespace(name="team-b"))
        await world.create("g", "team-b")
        await world.eventually(lambda: "team-b/g" in seen, "the gadget of the new team")
        await world.quiet(5)
    assert seen == ["team-a/g", "team-b/g"]


async def test_namespaces_can_be_changed_at_run_time() -> None:
    """Watches begin and end; objects of a namespace that was dropped are not reconciled any more, timers included."""
    world, tested, seen = World(), operator(namespaces=("x",)), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        seen.append(str(ctx.key))
        return Result(after=30)

    for namespace in ("x", "y"):
        await world.create("a", namespace)
    async with world.run(tested):
        await world.eventually(lambda: seen == ["x/a"], "the first namespace")
        tested.namespaces.change("y")
        await world.eventually(lambda: seen == ["x/a", "y/a"], "the second namespace")
        assert world.server.open_watches == 1
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 9}}), namespace="x")
        seen.clear()
        await world.quiet(100)
        assert set(seen) == {"y/a"}


# How it stops


async def test_what_is_under_way_is_finished_and_nothing_new_begins() -> None:
    """Its status is written, its event sent, the Lease given back; then nothing is left."""
    world, tested, log = World(), elected(), list[str]()

    @tested.controller(Gadget, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        log.append(f"begins {gadget.name}")
        await world.clock.sleep(5)
        gadget.status.phase = "Done"
        ctx.event("Finished", "in time")
        log.append(f"ends {gadget.name}")

    await world.create()
    async with world.run(tested) as running:
        await world.eventually(lambda: log, "a reconcile to begin")
        await world.create("late")
        running.cancel()
        await world.clock.advance(1)
        assert holder(world), "expected the Lease to be held while it works"
        await world.eventually(running.done, "the operator to stop")
    assert log == ["begins a", "ends a"]
    assert (world.status()["phase"], world.events) == ("Done", [("Finished", "in time")])
    assert (holder(world), world.server.open_watches) == ("", 0)


async def test_reconcile_that_does_not_end_in_time_is_given_up_and_named(caplog: pytest.LogCaptureFixture) -> None:
    """After `drain_seconds`."""
    world, tested, log = World(), operator(drain_seconds=10), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        log.append("begins")
        try:
            await asyncio.Event().wait()
        finally:
            log.append("is cancelled")

    await world.create()
    async with world.run(tested) as running:
        await world.eventually(lambda: log, "a reconcile to begin")
        running.cancel()
        await world.clock.advance(9)
        assert log == ["begins"]
        await world.clock.advance(2)
        await world.eventually(running.done, "the operator to stop")
    assert log == ["begins", "is cancelled"]
    assert any("did not end within 10 s" in text and "gadget of default/a" in text for text in caplog.messages)


async def test_second_stop_does_not_wait_for_what_is_under_way() -> None:
    """As with a second signal."""
    world, tested, log = World(), elected(drain_seconds=1000), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        log.append("begins")
        await asyncio.Event().wait()

    await world.create()
    async with world.run(tested) as running:
        await world.eventually(lambda: log, "a reconcile to begin")
        running.cancel()
        await world.clock.advance(5)
        assert not running.done()
        running.cancel()
        await world.eventually(running.done, "the operator to stop")
    assert holder(world) == ""


async def test_thread_that_does_not_end_does_not_keep_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    """It is left behind, and named."""
    world, tested = World(PassingClock()), operator(drain_seconds=0.1)
    begun, release = threading.Event(), threading.Event()

    @tested.controller(Gadget)
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        begun.set()
        release.wait(30)

    await world.create()
    try:
        async with world.run(tested) as running:
            await world.eventually(begun.is_set, "a reconcile to begin")
            running.cancel()
            await world.eventually(running.done, "the operator to stop")
    finally:
        release.set()
    assert any("did not end within 0.1 s" in text for text in caplog.messages)


# What runs beside the controllers


async def test_background_function_is_begun_anew_with_growing_delays(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it raises, until it returns."""
    world, tested, times = World(), operator(), list[float]()
    script: list[BaseException] = [ValueError("no"), asyncio.CancelledError(), SystemExit(1)]

    @tested.background
    async def polling(client: Client) -> None:
        times.append(world.clock.monotonic())
        if script:
            raise script.pop(0)

    async with world.run(tested) as running:
        await world.eventually(lambda: len(times) == 4, "a fourth beginning", within=60)
        await world.quiet(600)
        assert (len(times), running.done()) == (4, False)
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]
    assert len([text for text in caplog.messages if "begins anew" in text]) == 3


async def test_background_function_that_fails_when_it_is_stopped_is_not_begun_anew() -> None:
    """The operator stops all the same."""
    world, tested, begun = World(), operator(), list[int]()

    @tested.background
    async def stubborn(client: Client) -> None:
        begun.append(1)
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while it is stopped")

    async with world.run(tested) as running:
        await world.eventually(lambda: begun, "a beginning")
        running.cancel()
        await world.eventually(running.done, "the operator to stop")
    assert begun == [1]


async def test_background_function_runs_only_while_this_process_leads() -> None:
    """And its writes pass the same fence."""
    world, tested, log = World(), elected(), list[str]()
    kept: list[Client] = []

    @tested.background
    async def polling(client: Client) -> None:
        kept.append(client)
        log.append("begins")
        try:
            await asyncio.Event().wait()
        finally:
            log.append("ends")

    async with world.run(tested):
        await world.eventually(lambda: log, "a beginning")
        await kept[0].create(ConfigMap(name="led"))
        stolen = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15}}
        await world.user.patch(Lease, "tested", MergePatch(stolen))
        await world.eventually(lambda: log[-1] == "ends", "it to end with the leadership")
        with pytest.raises(NotLeaderError):
            await kept[0].create(ConfigMap(name="not-led"))
        await world.eventually(lambda: log == ["begins", "ends", "begins"], "it to begin with the next term", within=60)


async def test_background_function_can_trigger_reconciles() -> None:
    """From a thread too."""
    world, tested, reasons = World(PassingClock()), operator(), list[tuple[str, ...]]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        reasons.append(ctx.reasons)

    @tested.background
    async def polling(client: Client) -> None:
        await world.eventually(lambda: reasons, "the first reconcile")
        thread = threading.Thread(target=reconcile.trigger, args=("a",), kwargs={"namespace": HOME, "reason": "called"})
        thread.start()
        thread.join()

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: reasons[1:] == [("called",)], "the triggered one")
