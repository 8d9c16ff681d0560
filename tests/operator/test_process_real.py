"""An operator from its start to its end on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gadgets import Gadget, GadgetSpec, installed
from navarch._base.clock import SystemClock
from navarch.client import Client, MergePatch, WatchOptions
from navarch.controller import Context, ElectionOptions, Result
from navarch.errors import NotFound
from navarch.k8s.coordination.v1 import Lease
from navarch.operator import Operator

pytestmark = pytest.mark.real

THEIRS = "example.org/theirs"
BOUND = 60.0


async def until_gone(client: Client) -> None:
    """Returns when there is no such gadget any more."""
    try:
        while True:
            await client.get(Gadget, "a")
            await SystemClock().sleep(0.02)
    except NotFound:
        return


async def until(client: Client, holds: Callable[[Gadget], bool], awaited: str) -> Gadget:
    """The gadget, once that holds for it: it may do so already."""
    async with client.watch(Gadget, options=WatchOptions(initial=True)) as changes:
        async for change in changes:
            if holds(change.object):
                return change.object
    raise AssertionError(f"expected a gadget {awaited}")


async def until_phase(client: Client, phase: str) -> Gadget:
    """The gadget, once it is in that phase."""
    return await until(client, lambda gadget: gadget.status.phase == phase, f"in phase {phase}")


async def test_object_is_reconciled_and_cleaned_up_once(client: Client) -> None:
    """Permissions, election, finalizer, status and the end of it; somebody else's finalizer is left alone."""
    await installed(client)
    namespace = client.options.namespace
    election = ElectionOptions(name="tested", namespace=namespace)
    tested, log = Operator("tested", namespaces=(namespace,), crds="ignore", election=election), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        log.append(f"reconciled {gadget.metadata.generation}")
        gadget.status.phase = f"Size {gadget.spec.size}"

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> Result | None:
        log.append("cleaned up")
        gadget.metadata.finalizers.clear()
        reconcile.trigger(gadget.name, namespace=gadget.namespace)
        await SystemClock().sleep(0)
        return None

    await client.create(Gadget(name="a", spec=GadgetSpec(size=1)))
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        running = group.create_task(tested.serve(client))
        first = await until_phase(client, "Size 1")
        assert first.status.observed_generation == 1
        await client.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
        second = await until_phase(client, "Size 2")
        assert (second.status.observed_generation, second.metadata.finalizers) == (
            2,
            ["test.example.com/tested.gadget"],
        )
        assert log == ["reconciled 1", "reconciled 2"]
        await client.delete(Gadget, "a")
        await until_gone(client)
        running.cancel()
    assert log == ["reconciled 1", "reconciled 2", "cleaned up"]
    assert not (await client.get(Lease, "tested")).spec.holder_identity


async def test_finalizer_of_somebody_else_keeps_the_object(client: Client) -> None:
    """Ours goes alone."""
    await installed(client)
    tested, log = Operator("tested", namespaces=(client.options.namespace,), crds="ignore", election=False), list[str]()

    @tested.controller(Gadget)
    async def reconcile(gadget: Gadget, ctx: Context) -> None:
        gadget.status.phase = "Ready"

    @reconcile.cleanup
    async def farewell(gadget: Gadget, ctx: Context) -> None:
        log.append("cleaned up")
        gadget.status.phase = "Left"

    await client.create(Gadget(name="a"))
    await client.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": [THEIRS]}}))
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        running = group.create_task(tested.serve(client))
        await until_phase(client, "Ready")
        await client.delete(Gadget, "a")
        await until(client, lambda gadget: gadget.metadata.finalizers == [THEIRS], "with their finalizer alone")
        await client.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": None}}))
        await until_gone(client)
        running.cancel()
    assert log == ["cleaned up"]
