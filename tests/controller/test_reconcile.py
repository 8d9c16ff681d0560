"""What a reconciler may ask for and do, and what becomes of it: the contract, on a running operator."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import Any

import pytest

from gadgets import Gadget
from navarch._base.clock import Clock
from navarch.client import MergePatch
from navarch.controller import Context, Permanent, Result, Retry
from navarch.errors import Conflict, Forbidden
from navarch.k8s.core.v1 import ConfigMap
from operating import World, operator

FAR = 3600.0


def failures(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[logging.LogRecord]:
    """What was said of failed reconciles, at that level or above."""
    return [record for record in caplog.records if vars(record).get("event") == "failed" and record.levelno >= level]


class Times:
    """When a reconciler was called."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at: list[float] = []

    def note(self) -> int:
        self.at.append(self._clock.monotonic())
        return len(self.at)

    def __len__(self) -> int:
        return len(self.at)

    @property
    def pauses(self) -> list[float]:
        return [after - before for before, after in pairwise(self.at)]


async def test_return_of_nothing_is_the_end_of_it() -> None:
    """It is not called again before something changes."""
    world, tested = World(), operator()
    calls = Times(world.clock)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note()

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.quiet(FAR)
        assert len(calls) == 1
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        await world.eventually(lambda: len(calls) == 2, "a reconcile of the change")


async def test_result_after_comes_again_then() -> None:
    """After as many seconds as it said, although nothing changes."""
    world, tested = World(), operator()
    calls = Times(world.clock)
    reasons: list[tuple[str, ...]] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        reasons.append(ctx.reasons)
        return Result(after=30) if calls.note() < 3 else None

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 3, "three reconciles", within=100)
        await world.quiet(FAR)
    assert calls.pauses == pytest.approx([30, 30])
    assert reasons[1:] == [("30 s have passed",)] * 2


async def test_retry_after_comes_again_then() -> None:
    """The reason is one line without a traceback."""
    world, tested = World(), operator()
    calls = Times(world.clock)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if calls.note() == 1:
            raise Retry("the disk is not there yet", after=7)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 2, "a second reconcile")
    assert calls.pauses == pytest.approx([7])


async def test_retry_without_a_time_comes_again_with_growing_delays(caplog: pytest.LogCaptureFixture) -> None:
    """Its reason is told once."""
    world, tested = World(), operator()
    calls = Times(world.clock)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if calls.note() < 11:
            raise Retry("not yet")

    await world.create()
    caplog.set_level(logging.INFO)
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 11, "eleven reconciles", within=100)
    assert calls.pauses[-1] > 20 * calls.pauses[0]
    assert sum(vars(record).get("event") == "not yet" for record in caplog.records) == 1


async def test_delays_begin_anew_after_a_success() -> None:
    """A failure long ago does not make the next one wait longer."""
    world, tested = World(), operator()
    calls = Times(world.clock)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if calls.note() not in {10, 12}:
            raise Retry("not yet")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 10, "the first success", within=100)
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        await world.eventually(lambda: len(calls) == 12, "the second success")
    assert calls.pauses[-1] < calls.pauses[8] / 20


async def test_conflict_is_everyday_but_fields_that_others_manage_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """The one passes by itself; the other one never does."""
    world, tested = World(), operator()
    script = [Conflict("it has changed", code=409) for _ in range(4)]
    for managed in script[2:]:
        managed.managers = ("kubectl",)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if script:
            raise script.pop(0)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: not script, "the end of the script")
    assert [record.levelname for record in failures(caplog)] == ["WARNING"]


async def test_error_of_ours_is_told_with_the_users_line(caplog: pytest.LogCaptureFixture) -> None:
    """It has no traceback, so the line says which of several calls it was."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        ctx.owned(ConfigMap)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: failures(caplog), "a failure")
    called = reconcile.reconcile.__code__.co_firstlineno + 2
    assert vars(failures(caplog)[0])["fields"]["place"] == f"{__file__}:{called}"


async def test_child_of_a_kind_that_is_not_declared_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody is called when it changes; what is not owned is no child."""
    world, tested = World(), operator()
    calls: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        await ctx.apply(ConfigMap(name=f"{gadget.name}-free"), owned=False)
        assert len(caplog.records) == len(calls[:1])
        await ctx.apply(ConfigMap(name=gadget.name))
        calls.append(gadget.name)

    await world.create("a")
    await world.create("b")
    caplog.set_level(logging.WARNING)
    async with world.run(tested):
        await world.eventually(lambda: set(calls) == {"a", "b"}, "both reconciles")
    (told,) = caplog.messages
    assert "the reconciler writes ConfigMap as a child, but the controller does not declare that kind" in told
    assert "declare owns=(ConfigMap, ...), or write owned=False" in told


async def test_right_that_is_missing_is_told_with_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    """What no declaration needs can be named; a quota is no matter of rights."""
    world, tested = World(), operator()
    refusals = [
        'pods "a" is forbidden: User "shop" cannot patch resource "pods"',
        'pods "a" is forbidden: exceeded quota',
    ]

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if refusals:
            raise Forbidden(refusals.pop(0), code=403)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(failures(caplog)) == 2, "both failures")
    first, second = (vars(record)["fields"] for record in failures(caplog))
    assert "Operator(uses=(Uses(...),))" in first["remedy"]
    assert "remedy" not in second


async def test_permanent_is_not_tried_again_until_the_object_changes(caplog: pytest.LogCaptureFixture) -> None:
    """The reason becomes one event and one line."""
    world, tested = World(), operator()
    calls = Times(world.clock)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.note()
        raise Permanent("no such colour")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: world.events, "an event")
        await world.quiet(FAR)
        assert len(calls) == 1
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        await world.eventually(lambda: len(calls) == 2, "a reconcile of the change")
    assert world.events == [("GaveUp", "no such colour")]
    assert [record.levelname for record in caplog.records if "gave up" in record.getMessage()] == ["ERROR"]


async def test_any_exception_is_retried_with_growing_delays_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """With its traceback; the same again is for those who look for it."""
    world, tested = World(), operator()
    calls = Times(world.clock)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if calls.note() < 9:
            raise ZeroDivisionError("a hundred over nothing")

    await world.create()
    caplog.set_level(logging.DEBUG, "navarch.reconcile")
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 9, "nine reconciles")
        await world.quiet(FAR)
    assert len(calls) == 9
    assert calls.pauses[-1] > 20 * calls.pauses[0]
    (told,) = failures(caplog)
    assert told.exc_info is not None
    assert told.exc_info[0] is ZeroDivisionError
    assert len(failures(caplog, logging.DEBUG)) == 8


async def test_another_error_of_the_same_object_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    """And the first one again, once the object was well in between."""
    world, tested = World(), operator()
    script = [ValueError("one"), ValueError("one"), KeyError("two"), None, ValueError("one"), None]

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        step = script.pop(0)
        if step is not None:
            raise step
        return Result(after=1) if script else None

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: not script, "the end of the script")
    assert [record.exc_info[0] for record in failures(caplog) if record.exc_info] == [ValueError, KeyError, ValueError]


@pytest.mark.parametrize(
    "strange",
    [SystemExit(3), asyncio.CancelledError(), BaseException("of its own"), ExceptionGroup("several", [OSError()])],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_is_raised_is_a_failure_of_that_reconcile_alone(
    strange: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """What would end a program, and what looks like a cancellation but is none, ends neither worker nor program."""
    world, tested = World(), operator()
    failed, done = Times(world.clock), list[str]()

    @tested.controller(Gadget, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if gadget.name == "bad" and failed.note() < 4:
            raise strange
        done.append(gadget.name)

    await world.create("bad")
    async with world.run(tested) as running:
        await world.eventually(lambda: "bad" in done, "the object to be reconciled after three failures")
        await world.create("good")
        await world.eventually(lambda: "good" in done, "others to be reconciled")
        assert not running.done()
    assert len(failures(caplog)) == 1


async def test_error_that_cannot_be_shown_ends_no_worker() -> None:
    """Its text is asked for when it is told."""
    world, tested = World(), operator()
    calls, done = Times(world.clock), list[str]()

    class UnspeakableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @tested.controller(Gadget, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if gadget.name == "bad" and calls.note() < 3:
            raise UnspeakableError
        done.append(gadget.name)

    await world.create("bad")
    async with world.run(tested) as running:
        await world.eventually(lambda: "bad" in done, "the object to be reconciled in the end")
        assert not running.done()


async def test_wrong_return_value_says_what_was_expected(caplog: pytest.LogCaptureFixture) -> None:
    """It counts as a failure."""
    world, tested = World(), operator()
    calls = Times(world.clock)

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Any:
        return 30 if calls.note() == 1 else None

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 2, "a second reconcile")
    (told,) = failures(caplog)
    assert "expected None or Result(after=...)" in str(vars(told)["fields"]["why"])


async def test_object_is_a_private_copy() -> None:
    """What is changed on it beside the status is written nowhere, and the next reconcile does not see it."""
    world, tested = World(), operator()
    sizes: list[int | None] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        sizes.append(gadget.spec.size)
        gadget.spec.size = 99
        gadget.metadata.labels["mine"] = "yes"
        cached = await ctx.get(Gadget, "a")
        assert cached is not None
        sizes.append(cached.spec.size)
        gadget.status.phase = "Seen"
        return Result(after=1) if len(sizes) < 4 else None

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(sizes) == 4, "two reconciles")
    assert sizes == [1, 1, 1, 1]
    assert world.stored()["spec"] == {"size": 1}
    assert "labels" not in world.stored()["metadata"]
    assert world.status()["phase"] == "Seen"


@pytest.mark.parametrize("after", [-1.0, float("nan")])
def test_delays_that_cannot_be_meant_are_refused(after: float) -> None:
    """Of results and of retries."""
    with pytest.raises(ValueError, match="expected a delay of 0 seconds or more"):
        Result(after)
    with pytest.raises(ValueError, match="expected a delay of 0 seconds or more"):
        Retry("not yet", after=after)


async def test_object_that_is_gone_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """It is not reconciled; what was told of it, and what was applied for it, is forgotten."""
    world, tested = World(), operator()
    seen: list[Context] = []

    @tested.controller(Gadget, owns=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        seen.append(ctx)
        await ctx.apply(ConfigMap(name="child"))
        raise Permanent("never")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: seen, "a reconcile")
        applied = seen[0]._deps.apply_cache
        assert len(applied) == 1
        await world.user.delete(Gadget, "a")
        await world.quiet(1)
        assert (len(seen), len(applied)) == (1, 0)
        await world.create()
        await world.eventually(lambda: len(seen) == 2, "a reconcile of the new object")
    assert len([record for record in caplog.records if "gave up" in record.getMessage()]) == 2
