"""Workers: how many, for how long, on which keys; and plain functions in threads."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from gadgets import Gadget
from navarch.api import Key
from navarch.client import MergePatch
from navarch.controller import Context, Result
from navarch.errors import ClosedError
from navarch.k8s.core.v1 import ConfigMap
from navarch.observe import logs
from operating import PassingClock, World, operator


class Working:
    """Who is being reconciled right now, and the most at once so far; usable from threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.now: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.most = 0
        self.most_of_one = 0
        self.total = 0

    def begin(self, name: str) -> None:
        with self._guard:
            self.now[name] += 1
            self.begun[name] += 1
            self.total += 1
            self.most = max(self.most, self.now.total())
            self.most_of_one = max(self.most_of_one, self.now[name])

    def end(self, name: str) -> None:
        with self._guard:
            self.now[name] -= 1


async def test_one_key_is_never_reconciled_twice_at_once() -> None:
    """What changes meanwhile waits for the end of it."""
    world, tested, working = World(), operator(), Working()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        working.begin(gadget.name)
        await world.clock.sleep(1)
        working.end(gadget.name)

    await world.create()
    async with world.run(tested):
        for size in range(2, 12):
            await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": size}}))
            await world.clock.advance(0.3)
        await world.eventually(lambda: working.total >= 3 and not working.now.total(), "all of it to be done")
    assert working.most_of_one == 1


async def test_no_more_are_reconciled_at_once_than_was_said() -> None:
    """And as many as that."""
    world, tested, working = World(), operator(), Working()

    @tested.controller(Gadget, concurrency=3)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        working.begin(gadget.name)
        await world.clock.sleep(1)
        working.end(gadget.name)

    for number in range(10):
        await world.create(f"g{number}")
    async with world.run(tested):
        await world.eventually(lambda: working.total == 10 and not working.now.total(), "ten reconciles")
    assert working.most == 3


async def test_reconcile_that_never_returns_is_cut_off_reported_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Others are not held up by it."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget, timeout=10, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        if gadget.name == "stuck":
            await asyncio.Event().wait()

    await world.create("stuck")
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.create("other")
        await world.eventually(lambda: "other" in calls, "the other one")
        await world.eventually(lambda: calls.count("stuck") > 2, "it to be tried again", within=60)
    told = [record for record in caplog.records if vars(record).get("event") == "failed"]
    assert len(told) == 1
    assert told[0].exc_info is not None
    assert "expected an end within 10 s" in str(told[0].exc_info[1])
    fields = vars(told[0])["fields"]
    assert fields["place"].startswith(f"{__file__}:")
    assert "timeout=" in fields["remedy"]
    assert "asyncio.Event().wait()" in logging.Formatter().formatException(told[0].exc_info)


async def test_reconcile_that_ends_by_itself_when_it_is_cut_off_has_ended() -> None:
    """Whatever it makes of it."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget, timeout=10, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            gadget.status.phase = "Gave up"

    await world.create()
    async with world.run(tested):
        await world.eventually(world.status, "a status")
        await world.create("b")
        await world.eventually(lambda: calls == ["a", "b"], "the worker to go on")


# Plain functions


async def test_plain_function_runs_in_a_thread_and_waits_for_what_a_context_does() -> None:
    """With the same contract: results, statuses, reads and writes."""
    world, tested = World(PassingClock()), operator()
    threads: list[str] = []

    @tested.controller(Gadget, owns=(ConfigMap,))
    def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        threads.append(threading.current_thread().name)
        ctx.wait(ctx.apply(ConfigMap(name="child")))
        gadget.status.phase = f"{len(ctx.wait(ctx.list(ConfigMap)))} children"
        return Result(after=0.01) if len(threads) == 1 else None

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(threads) == 2, "a second reconcile")
        await world.eventually(world.status, "a status")
    assert world.status()["phase"] == "1 children"
    assert threading.main_thread().name not in threads


async def test_plain_functions_are_bounded() -> None:
    """No more threads than may work at once."""
    world, tested, working = World(PassingClock()), operator(), Working()
    release = threading.Event()

    @tested.controller(Gadget, concurrency=2)
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        working.begin(gadget.name)
        release.wait(60)
        working.end(gadget.name)

    for number in range(6):
        await world.create(f"g{number}")
    async with world.run(tested):
        await world.eventually(lambda: working.now.total() == 2, "two at once")
        release.set()
        await world.eventually(lambda: working.total == 6, "all of them")
    assert working.most == 2


async def test_thread_that_was_cut_off_keeps_its_key_until_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """It cannot be stopped: nobody else may work on its object, and it can read and write no more."""
    world, tested, working = World(PassingClock()), operator(), Working()
    release = threading.Event()
    begun, refused = list[Context](), list[str]()

    @tested.controller(Gadget, timeout=0.05, concurrency=2)
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        begun.append(ctx)
        working.begin(gadget.name)
        if gadget.name == "stuck" and not release.wait(60):
            return
        try:
            ctx.wait(ctx.list(ConfigMap))
        except ClosedError:  # on a machine that stalls, of the others too
            refused.append(gadget.name)
        working.end(gadget.name)

    await world.create("stuck")
    async with world.run(tested):
        await world.eventually(lambda: any("failed" in record.getMessage() for record in caplog.records), "a report")
        # On a machine that stalls the first to be cut off may not have had its thread yet.
        await world.eventually(lambda: begun and begun[0]._closed, "one to be cut off that has begun")
        await world.user.patch(Gadget, "stuck", MergePatch({"spec": {"size": 2}}))
        await world.create("other")
        await world.eventually(lambda: working.begun["other"], "the other one")
        assert (working.now["stuck"], working.begun["stuck"]) == (1, 1)
        release.set()
        await world.eventually(lambda: working.begun["stuck"] == 2, "the change to be reconciled")
        assert "stuck" in refused
    assert working.most_of_one == 1


async def test_thread_that_waits_in_its_context_is_freed_when_it_is_cut_off() -> None:
    """What it waits for is given up: its key is free at once, and nothing is left running."""
    world, tested, errors = World(PassingClock()), operator(), list[Exception]()

    @tested.controller(Gadget, timeout=0.05)
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        if len(errors) < 2:
            try:
                ctx.wait(asyncio.Event().wait())
            except ClosedError as error:
                errors.append(error)
        else:
            gadget.status.phase = "Done"

    await world.create()
    async with world.run(tested):
        await world.eventually(world.status, "the third reconcile to go well")
    assert "it was cut off at its time limit" in str(errors[0])


async def test_records_of_a_plain_function_say_what_they_are_about(caplog: pytest.LogCaptureFixture) -> None:
    """Also those of libraries that know nothing of it."""
    world, tested = World(PassingClock()), operator()
    surrounding: list[Any] = []

    @tested.controller(Gadget)
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        surrounding.append(logs._surrounding.get())

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: surrounding, "a reconcile")
    assert surrounding[0] is not None
    assert surrounding[0].fields["object"]


async def _seen(gadget: Gadget, ctx: Context, *, by: list[str]) -> None:
    by.append(gadget.name)


class _Object:
    def __init__(self, by: list[str]) -> None:
        self._by = by

    async def __call__(self, gadget: Gadget, ctx: Context) -> None:
        self._by.append(gadget.name)


def _decorated(by: list[str]) -> Callable[[Gadget, Context], Any]:
    @functools.wraps(_seen)
    def wrapper(gadget: Gadget, ctx: Context) -> Any:
        return _seen(gadget, ctx, by=by)

    return wrapper


@pytest.mark.parametrize(
    "made", [lambda by: functools.partial(_seen, by=by), _Object, _decorated], ids=["partial", "object", "decorated"]
)
async def test_whatever_can_be_called_and_awaited_is_a_coroutine(made: Callable[[list[str]], Any]) -> None:
    """A partial function, an object, and a function behind a plain decorator."""
    world, tested, by = World(PassingClock()), operator(), list[str]()
    tested.controller(Gadget, name="made")(made(by))
    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: by == ["a"], "a reconcile")


async def test_model_that_raises_while_it_is_read_ends_no_worker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A class may have code of its own that fails in unforeseen ways."""
    world, tested, calls = World(), operator(), list[Key]()

    @tested.controller(Gadget, concurrency=1)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(ctx.key)

    real = Gadget.from_json

    def from_json(data: bytes) -> Gadget:
        if b'"name":"bad"' in data:
            raise KeyError("unlucky")
        return real(data)

    monkeypatch.setattr(Gadget, "from_json", from_json)
    await world.create("good")
    world.server.store.create(Gadget.__kind__, "default", {**world.stored("good"), "metadata": {"name": "bad"}})
    async with world.run(tested):
        await world.quiet(5)
        await world.create("later")
        await world.eventually(lambda: len(calls) == 2, "the others")
    assert Key("default", "bad") not in calls
    assert len([record for record in caplog.records if vars(record).get("event") == "failed"]) == 1
