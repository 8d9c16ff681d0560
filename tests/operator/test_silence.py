"""Mistakes that nobody would notice, each reported in one clear line."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from gadgets import Gadget
from navarch import Operator
from navarch.api import Object
from navarch.client import MergePatch
from navarch.controller import ByMetadata, Context
from navarch.errors import DefinitionError
from navarch.k8s.core.v1 import ConfigMap, Namespace
from navarch.schema import crd
from navarch.testing import Cluster
from operating import PassingClock, World, operator


def messages(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if words in record.getMessage()]


async def test_namespace_that_does_not_exist_is_warned_of(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """It would be watched for ever without a word; one that exists is no reason to warn."""
    await cluster.create(Namespace(name="shop"))
    tested, calls = operator(namespaces=("shop", "shpo")), list[str]()

    @tested.controller(ConfigMap)
    async def reconcile(found: ConfigMap, ctx: Context) -> None:
        calls.append(found.name)

    async with cluster.run(tested):
        await cluster.create(ConfigMap(name="a", namespace="shop"))
        await cluster.eventually(
            lambda: cluster.get(ConfigMap, "a", namespace="shop"), lambda found: found.name in calls
        )
    (warning,) = messages(caplog, "does not exist")
    assert warning == (
        "tested: namespace shpo does not exist; nothing is reconciled in it until it is created. Check namespaces="
    )


class Boat(Object, group="boats.example.org", version="v1"):
    """A kind of another project."""


async def test_missing_kind_of_another_project_is_warned_of(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The operator waits for it, says so once with the remedy, and goes on when it is there."""
    tested, calls = Operator("tested", election=False), list[str]()

    @tested.controller(ConfigMap, reads=(Boat,), name="berths")
    async def reconcile(found: ConfigMap, ctx: Context) -> None:
        calls.append(found.name)

    await cluster.create(ConfigMap(name="a"))
    async with cluster.run(tested):
        await cluster.eventually(
            lambda: cluster.get(ConfigMap, "a"), lambda _: messages(caplog, "waits for CRDs of other projects")
        )
        assert not calls
        await cluster.client.install(crd(Boat))
        await cluster.eventually(lambda: cluster.get(ConfigMap, "a"), lambda found: found.name in calls)
    (warning,) = messages(caplog, "waits for CRDs of other projects")
    assert warning == (
        "tested: waits for CRDs of other projects, which are missing: boats.boats.example.org (Boat v1, for controller "
        "berths); install the projects that define them, or their CRDs alone: kubectl apply -f FILE. The operator goes on "
        "once they are there"
    )


async def test_spec_that_is_changed_inside_a_reconcile_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of it is written; the field is named, and what to do instead."""
    world, tested, calls = World(), operator(), list[int]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.spec.size = 5
        calls.append(1)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
        await world.user.patch(Gadget, "a", MergePatch({"spec": {"colour": "red"}}))
        await world.eventually(lambda: len(calls) > 1, "another reconcile")
    (warning,) = messages(caplog, "changed the spec of its object")
    assert "use ctx.patch(...)" in warning
    assert "object=default/a changed=spec.size" in warning


async def test_cached_object_that_its_reader_changes_is_warned_of_and_read_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Otherwise every other reconcile would see the change, which nobody has written."""
    world, tested, seen = World(), operator(), list[dict[str, str]]()

    @tested.controller(Gadget, reads=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        found = await ctx.get(ConfigMap, "settings")
        assert found is not None
        seen.append(dict(found.data or {}))
        found.data = {"mode": "changed"}

    await world.user.create(ConfigMap(name="settings", namespace="default", data={"mode": "given"}))
    await world.create("a")
    await world.create("b")
    async with world.run(tested):
        await world.eventually(lambda: len(seen) == 2, "two reconciles")
    assert seen == [{"mode": "given"}, {"mode": "given"}]
    warning, *_ = messages(caplog, "was changed by its reader")
    assert "Change a copy: found.copy()" in warning
    assert 'object="ConfigMap default/settings" changed=data.mode' in warning


async def test_reading_the_cache_is_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    """Neither is a copy that is changed, nor the status."""
    world, tested, calls = World(), operator(), list[str]()

    @tested.controller(Gadget, reads=(ConfigMap,))
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        (found,) = await ctx.list(ConfigMap)
        mine = found.copy()
        mine.data = {}
        gadget.status.phase = "Done"
        calls.append(gadget.name)

    await world.user.create(ConfigMap(name="settings", namespace="default", data={"mode": "given"}))
    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
    assert not messages(caplog, "changed")


async def test_stop_names_the_reconciles_that_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody who looks at the log after SIGTERM sees why the process is still there."""
    caplog.set_level("INFO")
    world, tested, may_end, calls = World(), operator(drain_seconds=25), asyncio.Event(), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        calls.append(gadget.name)
        await may_end.wait()

    await world.create()
    async with world.run(tested) as task:
        await world.eventually(lambda: calls, "a reconcile")
        task.cancel()
        await world.eventually(lambda: messages(caplog, "tested: stops"), "a line about the stop")
        may_end.set()
    assert messages(caplog, "stops") == ["tested: stops; these have up to 25 s to end: gadget of default/a"]


@pytest.mark.parametrize("form", ["plain", "by metadata"])
def test_mapping_with_other_parameters_is_refused_where_it_is_written(form: str) -> None:
    """It would fail for every change, and trigger nothing."""

    def owners(found: Any) -> Any: ...

    mapper = owners if form == "plain" else ByMetadata(cast(Any, owners))
    with pytest.raises(DefinitionError, match=r"got owners\(found: .*; write owners\(changed, lookup\)"):
        Operator("shop").controller(ConfigMap, watches={Gadget: cast(Any, mapper)})


async def test_plain_function_that_does_not_wait_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    """The call has done nothing; the line says what to write."""
    world, tested = World(PassingClock()), operator()

    @tested.controller(Gadget, owns=(ConfigMap,))
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        ctx.apply(ConfigMap(name=gadget.name, data={}))  # type: ignore[unused-coroutine]  # the mistake

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: messages(caplog, "without ctx.wait"), "an error")
    assert "write ctx.wait(ctx.apply(...)), or make the function async" in messages(caplog, "without ctx.wait")[0]


async def test_plain_function_that_waits_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Its calls are counted, and nothing else."""
    world, tested, calls = World(PassingClock()), operator(), list[str]()

    @tested.controller(Gadget, owns=(ConfigMap,))
    def reconcile(gadget: Gadget, ctx: Context) -> None:
        ctx.wait(ctx.apply(ConfigMap(name=gadget.name, data={})))
        calls.append(gadget.name)

    await world.create()
    async with world.run(tested):
        await world.eventually(lambda: calls, "a reconcile")
    assert not messages(caplog, "failed")
