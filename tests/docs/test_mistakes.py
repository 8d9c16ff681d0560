"""Typical mistakes, each made for real: what the page says of it is in the line that is printed, with the remedy."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, cast

import pytest

from controller.test_unfit import unfit
from docs.pages import DOCS
from gadgets import Gadget, GadgetSpec
from navarch import Meta, Operator, Resource, Rule, Spec, Status, run
from navarch._base.clock import ManualClock, SystemClock
from navarch.client import Config, connect, load
from navarch.controller import Context, Result
from navarch.errors import NavarchError
from navarch.k8s.core.v1 import ConfigMap, Namespace, ServiceSpec
from navarch.observe.metrics import Metrics
from navarch.operator import Endpoints, serve
from navarch.operator.crds import prepare_crds
from navarch.operator.endpoint_server import EndpointServer
from navarch.operator.permissions import check_permissions, needed_by
from navarch.operator.watchdog import Watchdog
from navarch.schema import crd
from navarch.testing import Cluster
from operating import PassingClock, World, operator
from scripted import refusal, scripted

Case = Callable[[pytest.LogCaptureFixture, Cluster], Awaitable[str]]
CASES: dict[str, Case] = {}
BOUND = 30.0


def case(mistake: str) -> Callable[[Case], Case]:
    """Makes the mistake that the page calls by this name, and returns what was said."""

    def declare(function: Case) -> Case:
        CASES[mistake] = function
        return function

    return declare


def said_by(mistake: Callable[[], object]) -> str:
    """What a declaration is refused with."""
    with pytest.raises((NavarchError, TypeError)) as caught:
        mistake()
    return str(caught.value)


async def said_after(work: Awaitable[object]) -> str:
    """What a call is refused with."""
    with pytest.raises(NavarchError) as caught:
        await asyncio.wait_for(work, BOUND)
    return str(caught.value)


async def logged(
    caplog: pytest.LogCaptureFixture,
    words: str,
    reconcile: Callable[..., Any],
    *,
    world: World | None = None,
    tested: Operator | None = None,
    **declared: Any,
) -> str:
    """The first line of the log with these words, of an operator that has this reconciler and one gadget."""
    caplog.set_level("INFO")
    world, tested = world or World(), tested or operator()
    tested.controller(Gadget, **declared)(reconcile)
    if not world.exists():
        await world.create()

    def line() -> str:
        return next((text for text in caplog.messages if words in text), "")

    async with world.run(tested):
        await world.eventually(line, f"a line with {words!r}", within=90.0)
    return line()


async def nothing(gadget: Gadget, ctx: Context) -> None: ...


# Declarations


@case("`@operator.controller` without a class")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: Operator("shop").controller(cast(Any, nothing)))


@case("a reconciler with other parameters, as in kopf")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    async def create(spec: Any, name: str, namespace: str, **kwargs: Any) -> None: ...

    return said_by(lambda: Operator("shop").controller(Gadget)(cast(Any, create)))


@case("`owns=ConfigMap` without a tuple")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: Operator("shop").controller(Gadget, owns=cast(Any, ConfigMap)))


@case('`namespaces="shop"`')
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: Operator("shop", namespaces=cast(Any, "shop")))


@case("an operator's name that no object may have")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: Operator("My Shop"))


@case("two controllers of one name")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    tested = Operator("shop")
    tested.controller(Gadget)(nothing)
    return said_by(lambda: tested.controller(Gadget)(nothing))


@case("two operators of one name")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return await said_after(serve(World().user, Operator("shop"), Operator("shop")))


@case("an operator without controllers")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return await said_after(Operator("shop").serve(World().user))


@case("a mapping of `watches` with other parameters")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    def owners(found: Any) -> Any: ...

    return said_by(lambda: Operator("shop").controller(Gadget, watches={ConfigMap: cast(Any, owners)}))


@case("a background function that is not async")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    def poll(client: Any) -> None: ...

    return said_by(lambda: Operator("shop").background(cast(Any, poll)))


@case("a rule that is no CEL")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    class TunnelSpec(Spec):
        size: Annotated[int, Rule("self >")] = 1

    class Tunnel(Resource[TunnelSpec, Status], group="mistakes.example.com", version="v1"):
        """A tunnel."""

    return said_by(lambda: crd(Tunnel))


@case("a default that its own bounds refuse")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    class TunnelSpec(Spec):
        size: Annotated[int, Meta(ge=2)] = 1

    class Tunnel(Resource[TunnelSpec, Status], group="mistakes.example.com", version="v1"):
        """A tunnel."""

    return said_by(lambda: crd(Tunnel))


@case("a misspelt keyword of a built-in kind")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: cast(Any, ServiceSpec)(clusterIP="None"))


@case("a field that the class does not have")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: cast(Any, GadgetSpec)(sise=1))


# Inside a reconcile


@case("a child of a kind that is not in `owns`")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        await ctx.apply(ConfigMap(name=gadget.name, data={}))

    return await logged(caplog, "does not declare that kind", reconcile)


@case("a plain function that calls `ctx.apply` without `ctx.wait`")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        ctx.apply(ConfigMap(name=gadget.name, data={}))  # type: ignore[unused-coroutine]  # the mistake

    return await logged(caplog, "ctx.wait", reconcile, world=World(PassingClock()), owns=(ConfigMap,))


@case("a call that blocks the event loop")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    def line() -> str:
        return next((text for text in caplog.messages if "is blocked" in text), "")

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(Watchdog(limit=0.05).run())
        clock, never = SystemClock(), threading.Event()
        until = clock.monotonic() + BOUND
        while not line():
            assert clock.monotonic() < until, "expected the watchdog to name the call that blocks"
            await clock.sleep(0)
            never.wait(0.3)  # the mistake
        watching.cancel()
    return line()


@case("a reconciler that returns something else")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    async def reconcile(gadget: Gadget, ctx: Context) -> Any:
        return 30

    return await logged(caplog, "expected None or Result", reconcile)


@case("`Result(after=0)` without end")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    async def reconcile(gadget: Gadget, ctx: Context) -> Result:
        return Result(after=0)

    return await logged(caplog, "times within", reconcile)


@case("a cleanup that raises")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    world, tested = World(), operator()
    declared = tested.controller(Gadget)(nothing)

    @declared.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None:
        raise OSError("the disk is away")

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: world.stored()["metadata"].get("finalizers"), "the finalizer")
        await world.user.delete(Gadget, "a")
        await world.eventually(lambda: world.events, "an event")
    ((reason, note),) = world.events
    return f"{reason}: {note}"


@case("a spec that is changed inside the reconcile")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.spec.size = 7

    return await logged(caplog, "changed the spec", reconcile)


@case("a cached object that is changed")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        for found in await ctx.list(ConfigMap):
            found.data = {"changed": "yes"}

    world = World()
    await world.user.create(ConfigMap(name="settings", namespace="default", data={}))
    return await logged(caplog, "changed by its reader", reconcile, world=world, reads=(ConfigMap,))


@case("an object that does not fit its class")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    world = World()
    await unfit(world, "a")
    return await logged(caplog, "does not fit its model", nothing, world=world)


@case("a number in the data of a ConfigMap")
async def _(_: pytest.LogCaptureFixture, cluster: Cluster) -> str:
    return await said_after(cluster.apply(ConfigMap(name="a", data=cast(Any, {"port": 80}))))


# The world around it


@case("a namespace that does not exist")
async def _(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> str:
    tested = operator(namespaces=("shpo",))
    tested.controller(ConfigMap)(cast(Any, nothing))

    async def lines() -> list[str]:
        return [text for text in caplog.messages if "does not exist" in text]

    async with cluster.run(tested):
        (line,) = await cluster.eventually(lines, bool)
    return line


@case("a CRD that is not there")
async def _(_: pytest.LogCaptureFixture, cluster: Cluster) -> str:
    return await said_after(prepare_crds(cluster.client, [Gadget], "verify"))


@case("rights that are missing")
async def _(_: pytest.LogCaptureFixture, cluster: Cluster) -> str:
    tested = Operator("shop")
    tested.controller(Gadget)(nothing)
    return await said_after(
        check_permissions(cluster.client_as("jane"), needed_by(tested, election_namespace="default"))
    )


@case("no kubeconfig")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: load("/nowhere/config"))


@case("an API server that is down")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with connect(Config(server=f"http://127.0.0.1:{port}", timeout=10.0)) as client:
        return await said_after(client.get(Namespace, "default"))


@case("a token that has expired")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    client, _transport = scripted(refusal(401, "Unauthorized"))
    return await said_after(client.get(Namespace, "default"))


@case("a port that is taken")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = Endpoints(health=f"127.0.0.1:{taken.getsockname()[1]}", metrics=None)
        client, clock = scripted()[0], ManualClock()
        return await said_after(
            EndpointServer(options, alive={}, ready={}, metrics=Metrics(), client=client, clock=clock).run()
        )


@case("`operator.run()` inside an event loop")
async def _(_: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    return said_by(lambda: run(Operator("shop")))


@case("SIGTERM while a reconcile is under way")
async def _(caplog: pytest.LogCaptureFixture, _cluster: Cluster) -> str:
    caplog.set_level("INFO")
    world, tested, may_end, calls = World(), operator(), asyncio.Event(), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        await may_end.wait()

    await world.create()
    async with world.run(tested) as task:
        await world.eventually(lambda: calls, "a reconcile")
        task.cancel()
        await world.eventually(lambda: any("stops" in text for text in caplog.messages), "a line about the stop")
        may_end.set()
    return next(text for text in caplog.messages if "stops" in text)


ROWS = re.findall(r"^\| (?P<mistake>.+?) \| (?P<said>`` .+ ``) \|$", (DOCS / "mistakes.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("mistake", "said"), ROWS, ids=[mistake for mistake, _ in ROWS])
async def test_mistake_is_answered_as_the_page_says(
    mistake: str, said: str, caplog: pytest.LogCaptureFixture, cluster: Cluster
) -> None:
    """In these words: what was expected or happened, and what to do; no traceback has to be read."""
    expected = said.removeprefix("`` ").removesuffix(" ``")
    answer = " ".join((await CASES[mistake](caplog, cluster)).split())
    for part in expected.split(" … "):
        assert part in answer


def test_page_has_every_mistake_that_is_made_here() -> None:
    """And no other."""
    assert sorted(mistake for mistake, _ in ROWS) == sorted(CASES)
    assert len(ROWS) >= 31
