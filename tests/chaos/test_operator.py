"""An operator through random histories with random faults: in the end everything is as it was asked for.

Its requests fail, its watches break, answers to its writes are lost, users change their minds and tamper with what it
made. When the faults stop, every object is reconciled, every child is right, and whatever went was cleaned up before.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from chaos.faults import (
    Answered,
    AnswerLost,
    CutInMidObject,
    Delayed,
    Fault,
    FaultyTransport,
    Garbled,
    GoneEvent,
    Matcher,
    Refused,
    Stalled,
    anything,
    lists,
    watches,
)
from gadgets import Gadget, GadgetSpec
from model_store import Change
from navarch.api import Key
from navarch.client import Client, MergePatch, Options, Request
from navarch.controller import Context
from navarch.errors import ConnectionLostError
from navarch.k8s.core.v1 import ConfigMap
from operating import HOME, World, operator

LIMIT_SECONDS = 1200.0
NAMES = ("a", "b", "c")


class Scene(World):
    """The world, an operator behind faults, and whom it has said farewell to."""

    def __init__(self) -> None:
        super().__init__()
        self.wire = FaultyTransport(self.server, self.clock)
        self.farewells: set[str] = set()
        self.operator = operator()
        declared = self.operator.controller(Gadget, owns=(ConfigMap,))(self.reconcile)
        declared.cleanup(self.farewell)

    async def reconcile(self, gadget: Gadget, ctx: Context) -> None:
        await ctx.apply(ConfigMap(name=gadget.name, data={"size": str(gadget.spec.size)}))
        gadget.status.phase = f"size {gadget.spec.size}"

    async def farewell(self, gadget: Gadget, ctx: Context) -> None:
        self.farewells.add(gadget.metadata.uid or "")

    def complaint(self) -> str | None:
        """What is not as it was asked for; None if all is."""
        children = self.server.objects(ConfigMap)
        for key, found in self.server.objects(Gadget).items():
            size, status, child = str(found["spec"]["size"]), found.get("status") or {}, children.get(key)
            if found["metadata"].get("deletionTimestamp"):
                return f"{key} should be gone"
            if status.get("phase") != f"size {size}":
                return f"{key} has size {size}, its status says {status}"
            if child is None or child["data"] != {"size": size}:
                return f"{key} has size {size}, its child is {child}"
        return None

    def gone_without_farewell(self) -> list[str]:
        """Objects that had a finalizer and went without a cleanup."""
        log = [entry for entry in self.server.store.log if isinstance(entry, Change) and entry.kind == Gadget.__kind__]
        gone = [entry.before["metadata"] for entry in log if entry.after is None and entry.before is not None]
        return [each["uid"] for each in gone if each.get("finalizers") and each["uid"] not in self.farewells]


Step = Callable[[Scene], Awaitable[None]]


async def ask_for(name: str, size: int, scene: Scene) -> None:
    if not scene.exists(name):
        await scene.create(name, spec=GadgetSpec(size=size))
    else:
        await scene.user.patch(Gadget, name, MergePatch({"spec": {"size": size}}))


async def delete(name: str, scene: Scene) -> None:
    if scene.exists(name):
        await scene.user.delete(Gadget, name)


async def tamper(name: str, by_deleting: bool, scene: Scene) -> None:
    if Key(HOME, name) not in scene.server.objects(ConfigMap):
        return
    if by_deleting:
        await scene.user.delete(ConfigMap, name)
    else:
        await scene.user.patch(ConfigMap, name, MergePatch({"data": {"size": "tampered"}}))


async def let_run(seconds: float, scene: Scene) -> None:
    await scene.clock.advance(seconds)


async def inject(fault: Fault, on: Matcher, times: int, scene: Scene) -> None:
    scene.wire.inject(fault, on=on, times=times)


async def compact(scene: Scene) -> None:
    scene.server.compact()


async def end_watches(scene: Scene) -> None:
    scene.server.end_watches(ConnectionLostError("cut"))


def writes(request: Request) -> bool:
    return request.method != "GET"


names, times = st.sampled_from(NAMES), st.integers(1, 3)
wishes = st.one_of(
    st.builds(partial, st.just(ask_for), names, st.integers(1, 5)),
    st.builds(partial, st.just(delete), names),
    st.builds(partial, st.just(tamper), names, st.booleans()),
    st.builds(partial, st.just(let_run), st.sampled_from([0.0, 0.1, 1.0, 10.0])),
)
stream_faults = st.sampled_from([CutInMidObject(), CutInMidObject(silent=True), Garbled(), GoneEvent(), Stalled()])
write_faults = st.sampled_from(
    [AnswerLost(), Refused(), Delayed(answer=0.5), Delayed(request=0.5), *map(Answered, (401, 403, 409, 429, 500, 503))]
)
trouble = st.one_of(
    st.builds(partial, st.just(inject), stream_faults, st.just(watches), times),
    st.builds(partial, st.just(inject), write_faults, st.just(writes), times),
    st.builds(partial, st.just(inject), write_faults, st.sampled_from([watches, lists, anything]), times),
    st.sampled_from([compact, end_watches]),
)
steps = st.integers(0, 9).flatmap(lambda chance: trouble if chance < 3 else wishes)


async def play(history: list[Step]) -> None:
    scene = Scene()
    client = Client(scene.wire, Options(), clock=scene.clock, rng=random.Random(1))
    async with scene.run(scene.operator, client=client):
        for step in history:
            await step(scene)
        scene.wire.heal()
        limit = scene.clock.monotonic() + LIMIT_SECONDS
        while (complaint := scene.complaint()) and scene.clock.monotonic() < limit:
            await scene.clock.advance(5.0)
        assert complaint is None
        assert not scene.gone_without_farewell()


@given(history=st.lists(steps, max_size=40))
@settings(phases=[Phase.explicit, Phase.generate])
def test_operator_gets_there_after_any_history(history: list[Step]) -> None:
    """Status and children are right, nothing that should be gone is left, nothing went without its cleanup."""
    asyncio.run(play(history))
