"""A context on a real API server, with a cache that runs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import pytest

from chaos.ledger import running
from chaos.waiting import until
from controller.reaching import Recorded
from gadgets import Gadget, GadgetSpec, installed
from navarch._base.clock import SystemClock
from navarch.api import Key, encode
from navarch.cache import Cache, Change
from navarch.client import Client, MergePatch
from navarch.controller.context import Context
from navarch.controller.deps import ControllerDeps
from navarch.controller.triggers import Version, Writer
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import ConfigMap, Service, ServiceAccount

pytestmark = pytest.mark.real

KINDS = (ConfigMap, Service, ServiceAccount, Deployment, Gadget)


class World:
    """A running cache of a few kinds, and the context of one owner."""

    def __init__(self, client: Client, cache: Cache, owner: Gadget) -> None:
        self.changes: list[Change] = []
        self.retracted: list[int] = []
        collections = [cache.collection(kind) for kind in KINDS]
        for collection in collections:
            collection.subscribe(self._changed)
        self.key = Key(owner.namespace, owner.name)
        self.deps = ControllerDeps(
            controller="fleet",
            client=client.using(manager="fleet"),
            collections={collection.kind: collection for collection in collections},
            owned=frozenset(collection.kind for collection in collections),
            recorder=cast(Any, Recorded()),
            clock=SystemClock(),
            retract=lambda key, token: self.retracted.append(cast(Version, token).version),
        )
        self.ctx = Context(self.deps, self.key, owner)

    def _changed(self, change: Change) -> None:
        """The cluster has other namespaces, which come and go with what is in them."""
        if not change.initial and change.newest.key.namespace == self.key.namespace:
            self.changes.append(change)

    def reasons(self) -> list[str]:
        """What would trigger the owner: every change but those that it made itself."""
        own = Writer("fleet", self.key)
        foreign = [change for change in self.changes if change.writer != own]
        return [str(change.newest.key) for change in foreign if _token(change) not in self.retracted]

    async def settled(self, name: str, is_there: bool) -> None:
        """The watch has shown what became of an object."""

        def shown() -> bool:
            last = [change for change in self.changes if change.newest.key.name == name][-1:]
            return bool(last) and (last[0].new is not None) == is_there

        await until(shown, f"the watch to show that {name} is {'there' if is_there else 'gone'}")


def _token(change: Change) -> int:
    return change.newest.version if change.new else -change.newest.version


@pytest.fixture
async def world(client: Client) -> AsyncIterator[World]:
    await installed(client)
    owner = await client.create(Gadget(name="owner"))
    cache = Cache(client, SystemClock(), random.Random(1))
    world = World(client, cache, owner)
    async with running(cache.run()):
        await asyncio.wait_for(cache.wait_synced(), 60)
        yield world


def children(world: World, replicas: int = 0) -> list[Any]:
    labels = {"app": world.key.name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    wire = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80}]}}
    settings = ConfigMap(name="cm", data={"k": str(replicas)})
    return [Deployment.from_json(encode(wire)), Service.from_json(encode(service)), settings]


async def test_children_are_applied_once_read_at_once_and_trigger_nobody(world: World) -> None:
    """Not even those of which the server makes more than was asked for."""
    ctx = world.ctx
    await ctx.apply_all([*children(world), ServiceAccount(name="sa")])
    assert sorted(each.name for each in await ctx.list(ConfigMap) if each.name != "kube-root-ca.crt") == ["cm"]
    for name in ("web", "svc", "cm", "sa"):
        await world.settled(name, is_there=True)
    versions = {entry.key: entry.version for kind in KINDS for entry in world.deps.collections[kind.__kind__].store}
    await ctx.apply_all([*children(world), ServiceAccount(name="sa")])
    world.deps.apply_cache.forget(world.key)
    await ctx.apply_all([*children(world), ServiceAccount(name="sa")])
    now = {entry.key: entry.version for kind in KINDS for entry in world.deps.collections[kind.__kind__].store}
    ours = {key for key in now if key.namespace == world.key.namespace and key.name in {"svc", "cm", "sa"}}
    assert {key: now[key] for key in ours} == {key: versions[key] for key in ours}
    await ctx.apply_all(children(world, replicas=1)[1:])
    assert await ctx.get(Deployment, "web") is None
    assert await ctx.get(ServiceAccount, "sa") is None
    await world.settled("web", is_there=False)
    await world.settled("sa", is_there=False)
    assert not [name for name in world.reasons() if name.endswith(("/cm", "/svc", "/sa"))]


async def test_change_of_others_is_a_reason_although_an_apply_came_upon_it(world: World) -> None:
    """The apply changed nothing, and was answered with their version."""
    ctx = world.ctx
    await ctx.apply(Gadget(name="child", spec=GadgetSpec(size=1)))
    await world.settled("child", is_there=True)
    for number in range(20):
        world.deps.apply_cache.forget(world.key)
        phase = f"phase {number}"
        patch = MergePatch({"status": {"phase": phase}})
        await ctx.client.using(manager="others").patch(Gadget, "child", patch, subresource="status")
        applied = await ctx.apply(Gadget(name="child", spec=GadgetSpec(size=1)))
        assert applied.status.phase == phase
        await until(partial(_has_more, world, number), f"change {number} of others to be a reason")
    assert len(_about_child(world)) == 20


def _has_more(world: World, known: int) -> bool:
    return len(_about_child(world)) > known


def _about_child(world: World) -> list[str]:
    return [name for name in world.reasons() if name == f"{world.key.namespace}/child"]


async def test_kind_whose_deletion_is_answered_with_the_object_is_gone(world: World) -> None:
    """Some are, some are not; with a finalizer an object stays for a while."""
    ctx = world.ctx
    await ctx.create(ServiceAccount(name="sa"))
    waiting = ConfigMap(name="cm")
    waiting.metadata.finalizers = ["example.com/wait"]
    await ctx.create(waiting)
    assert await ctx.delete(ServiceAccount, "sa") is True
    assert await ctx.delete(ConfigMap, "cm") is True
    assert await ctx.get(ServiceAccount, "sa") is None
    left = await ctx.get(ConfigMap, "cm")
    assert left is not None
    assert left.metadata.deletion_timestamp is not None
    await ctx.client.patch(ConfigMap, "cm", MergePatch({"metadata": {"finalizers": None}}))
    await world.settled("cm", is_there=False)
    await world.settled("sa", is_there=False)
    assert await ctx.get(ConfigMap, "cm") is None
    assert await ctx.delete(left) is False
