"""A status is written once, at the end, if it differs, and never on top of what somebody else wrote."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from gadgets import Gadget, GadgetStatus
from navarch.api import Condition, decode, format_time, truncate_to_seconds
from navarch.client import Client, MergePatch, Options, Request, Response, WebSocket
from navarch.controller import Context, Permanent, Result
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import PodSpec, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector
from operating import World, operator

STATUS = "/status"
LONG_AGO = "2030-01-01T00:00:00Z"


class Interrupted:
    """A transport on which something happens just before a request of some kind reaches the server, once."""

    def __init__(self, world: World, ending: str, happens: Callable[[], Awaitable[Any]]) -> None:
        self._server = world.server
        self._ending = ending
        self._happens: Callable[[], Awaitable[Any]] | None = happens
        self.origin = world.server.origin
        self.host = world.server.host

    def client(self) -> Client:
        return Client(self, Options(), clock=self._server._clock)

    async def send(self, request: Request) -> Response:
        happens = self._happens
        if happens is not None and request.method in {"PUT", "PATCH"} and request.path.endswith(self._ending):
            self._happens = None
            await happens()
        return await self._server.send(request)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        return await self._server.connect(request, protocols)

    async def close(self) -> None: ...


def ready() -> Condition:
    return Condition(
        type="Ready", status="True", reason="Fine", message="", last_transition_time=datetime(2030, 1, 1, tzinfo=UTC)
    )


async def test_status_is_written_once_at_the_end() -> None:
    """However often it was changed on the way; its echo triggers nothing."""
    world, tested = World(), operator()
    calls: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        for phase in ("Begun", "Half done", "Done"):
            gadget.status.phase = phase
            await ctx.client.get(Gadget, "a")

    await world.create()
    async with world.run(tested):
        await world.eventually(world.status, "a status")
        await world.quiet(60)
    assert world.status() == {"phase": "Done", "observedGeneration": 1, "conditions": []}
    assert (len(world.requests("PUT", STATUS)), calls) == (1, ["a"])


async def test_status_that_is_the_same_is_not_written() -> None:
    """Also if it was made anew from nothing."""
    world, tested = World(), operator()
    calls: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> Result | None:
        calls.append(gadget.name)
        gadget.status = GadgetStatus(phase="Done")
        return Result(after=1) if len(calls) < 3 else None

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: len(calls) == 3, "three reconciles")
        await world.quiet(1)
    assert len(world.requests("PUT", STATUS)) == 1


async def test_status_that_nobody_touches_is_never_written() -> None:
    """Not even the generation that was observed."""
    world, tested = World(), operator()
    calls: list[int] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.metadata.generation or 0)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        await world.eventually(lambda: calls == [1, 2], "a reconcile of the change")
        await world.quiet(1)
    assert world.requests("PUT", STATUS) == []


@pytest.mark.parametrize("error", [ValueError("no"), Permanent("no")], ids=lambda error: type(error).__name__)
async def test_status_is_written_also_when_the_reconciler_raised(error: Exception) -> None:
    """So that people can see how far it came."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.status.phase = "Stuck"
        raise error

    await world.create()
    async with world.run(tested):
        await world.eventually(world.status, "a status")
        await world.quiet(60)
    written = 1 if isinstance(error, Permanent) else 2  # the second one says that it keeps failing
    assert (world.status()["phase"], len(world.requests("PUT", STATUS))) == ("Stuck", written)


async def test_status_is_written_also_when_the_reconciler_was_cut_off() -> None:
    """At its time limit."""
    world, tested = World(), operator()
    forever = world.clock.sleep

    @tested.controller(Gadget, timeout=5)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.status.phase = "Slow"
        await forever(1e9)

    await world.create()
    async with world.run(tested):
        await world.eventually(world.status, "a status")
    assert world.status()["phase"] == "Slow"


async def test_observed_generation_is_kept_up_to_date_once_it_is_there() -> None:
    """After a reconcile that went well, although nothing else of the status has changed; not after one that failed."""
    world, tested = World(), operator()
    observed: list[int | None] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        observed.append(gadget.status.observed_generation)
        gadget.status.phase = "Done"
        if gadget.spec.size == 3:
            raise Permanent("three is too many")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: world.status().get("observedGeneration") == 1, "the first generation")
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        await world.eventually(lambda: world.status()["observedGeneration"] == 2, "the second generation")
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 3}}))
        await world.eventually(lambda: len(observed) == 3, "a reconcile of the third generation")
        await world.quiet(1)
        assert world.status()["observedGeneration"] == 2


async def test_observed_generation_is_that_of_the_spec_that_was_reconciled() -> None:
    """Not that of a newer one which came meanwhile."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        if gadget.spec.size == 1:
            await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
            await world.clock.sleep(1)  # the watch shows it
        gadget.status.phase = f"Size {gadget.spec.size}"

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: world.status().get("phase") == "Size 2", "both reconciles")
    sent = [decode(dict[str, Any], request.body or b"") for request in world.requests("PUT", STATUS)]
    assert [each["status"]["observedGeneration"] for each in sent][:1] == [1]
    assert world.status()["observedGeneration"] == 2


async def test_what_a_built_in_kind_has_observed_is_not_ours_to_say() -> None:
    """Whoever reconciles Deployments leaves their status to the controller that it belongs to."""
    world, tested = World(), operator()
    world.server.serve(Deployment)
    calls: list[str] = []

    @tested.controller(Deployment)
    async def reconcile(deployment: Deployment, ctx: Context) -> None:
        calls.append(deployment.name)

    template = PodTemplateSpec(spec=PodSpec(containers=[]))
    spec = DeploymentSpec(selector=LabelSelector(match_labels={"a": "b"}), template=template)
    await world.user.create(Deployment(name="a", spec=spec))
    observed = MergePatch({"status": {"observedGeneration": 1}})
    await world.user.patch(Deployment, "a", observed, subresource="status")
    await world.user.patch(Deployment, "a", MergePatch({"spec": {"replicas": 2}}))
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.quiet(1)
    assert world.requests("PUT", STATUS) == []


async def test_conflict_carries_the_change_over_to_what_somebody_else_wrote() -> None:
    """His condition and his fields survive, and so does ours."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.status.phase = "Ours"
        gadget.status.conditions = [*gadget.status.conditions, ready()]

    async def somebody() -> None:
        theirs = {"type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": LONG_AGO}
        patch = MergePatch({"status": {"conditions": [theirs], "unknownToUs": {"deep": 1}}})
        await world.user.patch(Gadget, "a", patch, subresource="status")

    await world.create()
    async with world.run(tested, client=Interrupted(world, STATUS, somebody).client()):
        await world.eventually(lambda: world.status().get("phase") == "Ours", "our status")
    found = world.status()
    assert {each["type"] for each in found["conditions"]} == {"Theirs", "Ready"}
    assert found["unknownToUs"] == {"deep": 1}
    assert len(world.requests("PUT", STATUS)) == 2


async def test_fields_of_a_status_that_the_model_does_not_know_survive() -> None:
    """A newer version of the operator may have written them."""
    world, tested = World(), operator()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.status.phase = "Done"

    await world.create()
    newer = MergePatch({"status": {"phase": "Old", "newer": [1, 2], "conditions": []}})
    await world.user.patch(Gadget, "a", newer, subresource="status")
    async with world.run(tested):
        await world.eventually(lambda: world.status()["phase"] == "Done", "our status")
    assert world.status()["newer"] == [1, 2]


async def test_object_that_was_replaced_meanwhile_is_left_alone() -> None:
    """The new one of that name gets its own reconcile and its own status."""
    world, tested = World(), operator()
    uids: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        uids.append(gadget.metadata.uid)
        gadget.status.phase = f"of {gadget.metadata.uid}"

    async def somebody() -> None:
        await world.user.delete(Gadget, "a")
        await world.create()

    await world.create()
    async with world.run(tested, client=Interrupted(world, STATUS, somebody).client()):
        await world.eventually(world.status, "a status of the new object")
        await world.quiet(1)
    assert world.status()["phase"] == f"of {world.stored()['metadata']['uid']}"
    assert len(set(uids)) == 2
    assert len(world.requests("PUT", STATUS)) == 2


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen", "unseen"])
async def test_status_of_an_object_that_went_meanwhile_is_dropped(
    is_seen: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without a word: nothing failed, and nothing is tried again."""
    world, tested = World(), operator()
    calls: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        gadget.status.phase = "Done"
        if is_seen:
            await world.user.delete(Gadget, "a")
            await world.clock.sleep(1)

    async def somebody() -> None:
        if not is_seen:
            await world.user.delete(Gadget, "a")

    await world.create()
    async with world.run(tested, client=Interrupted(world, STATUS, somebody).client()):
        await world.eventually(lambda: not world.exists() and calls, "a reconcile")
        await world.quiet(60)
    assert calls == ["a"]
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_object_that_goes_between_a_conflict_and_the_next_try_is_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As if it had gone before."""
    world, tested = World(), operator()
    calls: list[str] = []

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        gadget.status.phase = "Done"

    class Vanishing(Interrupted):
        async def send(self, request: Request) -> Response:
            if request.method == "GET" and request.path.endswith("/gadgets/a"):
                await world.user.delete(Gadget, "a")
            return await super().send(request)

    async def somebody() -> None:
        await world.user.patch(Gadget, "a", MergePatch({"status": {"phase": "Theirs"}}), subresource="status")

    await world.create()
    async with world.run(tested, client=Vanishing(world, STATUS, somebody).client()):
        await world.eventually(lambda: not world.exists(), "the object to have gone")
        await world.quiet(60)
    assert calls == ["a"]
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_condition_in_one_line_gets_its_time_from_the_runtime() -> None:
    """A condition that a reconciler sets has the time of the write; it keeps that time while its status stays."""
    world, tested = World(), operator()
    up = [False]

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.status.set_condition("Ready", up[0], "Serving" if up[0] else "Starting", f"size {gadget.spec.size}")

    def ready() -> dict[str, Any]:
        return next(iter(world.status().get("conditions", [])), {})

    async with world.run(tested):
        await world.create()
        await world.eventually(lambda: ready().get("status") == "False", "the condition")
        first = ready()["lastTransitionTime"]
        assert first == format_time(truncate_to_seconds(world.clock.now()))
        await world.quiet(60.0)
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}), namespace="default")
        await world.eventually(lambda: ready().get("message") == "size 2", "the new message")
        assert ready()["lastTransitionTime"] == first
        up[0] = True
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"size": 3}}), namespace="default")
        await world.eventually(lambda: ready().get("status") == "True", "the new status")
        assert ready()["lastTransitionTime"] > first


async def test_condition_that_stays_as_it_was_is_not_written_again() -> None:
    """Setting the same condition in every reconcile sends nothing."""
    world, tested, calls = World(), operator(), list[int]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(1)
        gadget.status.set_condition("Ready", True, "Serving")

    async with world.run(tested):
        await world.create()
        await world.eventually(lambda: world.status().get("conditions"), "the condition")
        written = len(world.requests("PUT", STATUS))
        await world.user.patch(Gadget, "a", MergePatch({"metadata": {"labels": {"again": "yes"}}}), namespace="default")
        await world.eventually(lambda: len(calls) == 2, "the second reconcile")
        await world.quiet()
    assert len(world.requests("PUT", STATUS)) == written
