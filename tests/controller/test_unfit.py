"""An object that does not fit its model is marked, and stops nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from controller.test_status import STATUS, Interrupted
from gadgets import Gadget
from navarch.client import MergePatch
from navarch.controller import Context
from navarch.controller.status import MISMATCH
from navarch.operator import Operator
from operating import World, operator


class Strict:
    """An operator, and whom it reconciled."""

    def __init__(self) -> None:
        self.operator: Operator = operator()
        self.reconciled: list[str] = []

        @self.operator.controller(Gadget)
        async def reconcile(gadget: Gadget, ctx: Context) -> None:
            self.reconciled.append(gadget.name)


async def unfit(world: World, name: str = "bad") -> None:
    """A gadget with a size that is no number."""
    await world.create(name)
    await resized(world, "big", name)


async def resized(world: World, size: Any, name: str = "bad") -> None:
    key = next(key for key in world.server.objects(Gadget) if key.name == name)
    found = world.stored(name)
    changed = {**found, "spec": {**found["spec"], "size": size}}
    world.server.store.replace(Gadget.__kind__, key, changed)
    world.server.bookmark()


def mismatches(world: World, name: str = "bad") -> list[dict[str, Any]]:
    return [each for each in world.status(name).get("conditions", []) if each["type"] == MISMATCH]


async def test_object_that_does_not_fit_gets_a_condition_and_an_event(caplog: pytest.LogCaptureFixture) -> None:
    """Both say what does not fit, and so does the log, once; the reconciler does not see it."""
    world, strict = World(), Strict()
    await unfit(world)
    async with world.run(strict.operator):
        await world.eventually(lambda: mismatches(world), "a condition")
        for _ in range(3):
            strict.operator.controllers[0].trigger("bad", namespace="default")
            await world.quiet(60)
    assert len([text for text in caplog.messages if "does not fit its model" in text]) == 1
    (condition,) = mismatches(world)
    assert (condition["status"], condition["observedGeneration"]) == ("True", 2)
    assert "size" in condition["message"]
    assert world.events == [("DoesNotFitModel", condition["message"])]
    assert len(world.requests("PUT", STATUS)) == 1
    assert strict.reconciled == []


async def test_others_are_reconciled_all_the_same() -> None:
    """Those before and those after it."""
    world, strict = World(), Strict()
    for name in ("a", "z"):
        await world.create(name)
    await unfit(world)
    async with world.run(strict.operator):
        await world.eventually(lambda: sorted(strict.reconciled) == ["a", "z"], "the others")
        await world.create("later")
        await world.eventually(lambda: "later" in strict.reconciled, "one that comes later")


async def test_condition_goes_when_the_object_fits_again() -> None:
    """And only that condition."""
    world, strict = World(), Strict()
    await world.create("bad")
    other = {
        "type": "Other",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    await world.user.patch(Gadget, "bad", MergePatch({"status": {"conditions": [other]}}), subresource="status")
    await resized(world, "big")
    async with world.run(strict.operator):
        await world.eventually(lambda: mismatches(world), "a condition")
        await resized(world, 3)
        await world.eventually(lambda: not mismatches(world), "the condition to go")
        assert strict.reconciled == ["bad"]
    assert [each["type"] for each in world.status("bad")["conditions"]] == ["Other"]


async def test_condition_says_what_does_not_fit_now() -> None:
    """Also if it changes from one mistake to another."""
    world, strict = World(), Strict()
    await unfit(world)
    async with world.run(strict.operator):
        await world.eventually(lambda: mismatches(world), "a condition")
        await resized(world, [1])
        await world.eventually(lambda: mismatches(world)[0]["observedGeneration"] == 3, "another condition")
    assert "array" in mismatches(world)[0]["message"]


async def test_condition_comes_although_somebody_else_wrote_meanwhile() -> None:
    """A conflict is no refusal."""
    world, strict = World(), Strict()

    async def somebody() -> None:
        await world.user.patch(
            Gadget.__kind__, "bad", MergePatch({"status": {"phase": "Theirs"}}), subresource="status"
        )

    await unfit(world)
    async with world.run(strict.operator, client=Interrupted(world, STATUS, somebody).client()):
        await world.eventually(lambda: mismatches(world), "a condition")
    assert world.status("bad")["phase"] == "Theirs"


@pytest.mark.parametrize("status", [{"phase": ["no", "text"]}, {"conditions": "none"}, "broken"], ids=str)
async def test_status_that_does_not_fit_stops_nothing_either(status: Any) -> None:
    """It is what the reconciler itself writes, but somebody else may have."""
    world, strict = World(), Strict()
    await world.create("bad")
    await world.create("good")
    key = next(key for key in world.server.objects(Gadget) if key.name == "bad")
    changed = {**world.stored("bad"), "status": status}
    world.server.store.replace(Gadget.__kind__, key, changed, only_status=True)
    async with world.run(strict.operator):
        await world.eventually(lambda: world.events, "an event")
        await world.eventually(lambda: strict.reconciled, "the other one")
    assert strict.reconciled == ["good"]
