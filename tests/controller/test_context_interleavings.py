"""Own writes, writes of others and the watch in any order: nobody's change is ever taken for our own.

What happens while a request is under way is part of the history: before the server has it, and before its answer is
back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from controller.reaching import KEY, US, World, gadget
from example_counts import examples
from gadgets import Gadget
from model_store import Change as Logged
from navarch.api import Key
from navarch.cache import Change
from navarch.client import MergePatch, Request, Response
from navarch.controller.context import Context
from navarch.controller.triggers import Version
from navarch.errors import AlreadyExists, Conflict, NotFound

NAMES = ("a", "b")


class Interrupted:
    """A transport on which things happen while one of our writes is under way."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.origin = server.origin
        self.host = server.host
        self.connect = server.connect
        self.close = server.close
        self.before: list[Step] = []
        self.after: list[Step] = []
        self.history: History | None = None
        self.own: set[int] = set()

    async def send(self, request: Request) -> Response:
        await self._play(self.before)
        known = self.server.store.version
        answer: Response = await self.server.send(request)
        self.own.update(range(known + 1, self.server.store.version + 1))
        await self._play(self.after)
        return answer

    async def _play(self, steps: list[Step]) -> None:
        """Each happens once, in whichever request of the write comes first."""
        while steps and self.history is not None:
            await steps.pop(0)(self.history)


class History:
    """A world, who made which version, and what would have been reconciled."""

    def __init__(self) -> None:
        self.wire: Interrupted
        self.world = World(Gadget, owned=(Gadget,), transport=self._wired)
        self.wire.history = self
        self.ctx: Context
        self.queued: list[tuple[Key, str, int]] = []
        self.count = 0
        self.world.collection(Gadget).subscribe(self._changed)
        object.__setattr__(self.world.deps, "retract", self._retract)

    def _wired(self, server: Any) -> Interrupted:
        self.wire = Interrupted(server)
        return self.wire

    def _changed(self, change: Change) -> None:
        """As triggers do: a change by us is no reason for our key."""
        if change.writer != US:
            newest = change.newest
            self.queued.append((newest.key, newest.uid, newest.version if change.new else -newest.version))

    def _retract(self, key: Key, token: Hashable) -> None:
        assert key == KEY
        assert isinstance(token, Version)
        own = token.version in self.wire.own or token in self._own_ends()
        left = [each for each in self.queued if (each[0], each[2]) != (token.key, token.version)]
        assert own or left == self.queued, f"expected to take back a change of our own, got {token}"
        self.queued = left

    def _own_ends(self) -> list[Version]:
        """The objects that we deleted, as they were last."""
        log = (logged for logged in self.world.server.store.log if isinstance(logged, Logged))
        ends = [each for each in log if each.after is None and each.version in self.wire.own]
        return [Version(each.kind, each.key, _version(each.before)).end for each in ends]

    def next_value(self) -> int:
        self.count += 1
        return self.count

    def swallowed(self) -> list[Logged]:
        """The changes by others that would never have been looked at."""
        log = (logged for logged in self.world.server.store.log if isinstance(logged, Logged))
        of_others = [each for each in log if each.kind == Gadget.__kind__ and each.version not in self.wire.own]
        return [each for each in of_others if not self._is_queued(each)]

    def _is_queued(self, logged: Logged) -> bool:
        found = logged.after or logged.before
        assert found is not None
        of_it = [version for _, uid, version in self.queued if uid == found["metadata"]["uid"]]
        return logged.version in of_it if logged.after else any(version < 0 for version in of_it)


def _version(found: dict[str, Any] | None) -> int:
    return int(found["metadata"]["resourceVersion"]) if found else 0


Step = Callable[[History], Awaitable[None]]


async def apply(name: str, size: int, before: list[Step], after: list[Step], history: History) -> None:
    """One of few sizes, so that an apply may well change nothing."""
    history.wire.before, history.wire.after = list(before), list(after)
    written = await history.ctx.apply(gadget(name, size=size))
    _refuse_older(history, name, int(written.metadata.resource_version), written.metadata.uid)


async def create(name: str, before: list[Step], after: list[Step], history: History) -> None:
    history.wire.before, history.wire.after = list(before), list(after)
    with contextlib.suppress(AlreadyExists):
        await history.ctx.create(gadget(name))


async def delete(name: str, before: list[Step], after: list[Step], history: History) -> None:
    history.wire.before, history.wire.after = list(before), list(after)
    with contextlib.suppress(Conflict):
        await history.ctx.delete(Gadget, name)


def _refuse_older(history: History, name: str, version: int, uid: str) -> None:
    """What we read is never older than what we wrote, unless others have deleted it since."""
    held = history.world.collection(Gadget).entry(Key("default", name))
    now = history.world.server.objects(Gadget).get(Key("default", name))
    if now is not None and now["metadata"]["uid"] == uid:
        assert held is not None, f"expected to read our own write of {name} at {version}, got nothing"
        assert held.version >= version


async def others_change(name: str, field: str, history: History) -> None:
    """They create what is not there."""
    client, value = history.world.others, history.next_value()
    with contextlib.suppress(NotFound):
        if field == "status":
            patch = MergePatch({"status": {"phase": f"phase {value}"}})
            await client.patch(Gadget, name, patch, subresource="status")
        else:
            await client.patch(Gadget, name, MergePatch({"spec": {field: value}}))
        return
    await client.create(gadget(name, replicas=value))


async def others_delete(name: str, history: History) -> None:
    with contextlib.suppress(NotFound):
        await history.world.others.delete(Gadget, name)


async def deliver(count: int, history: History) -> None:
    history.world.deliver(count)


async def forget(history: History) -> None:
    """As a new process would: everything is sent once more."""
    history.world.deps.apply_cache.forget(KEY)


names = st.sampled_from(NAMES)
foreign = st.one_of(
    st.builds(partial, st.just(others_change), names, st.sampled_from(["status", "size", "replicas"])),
    st.builds(partial, st.just(others_delete), names),
    st.builds(partial, st.just(deliver), st.integers(1, 4)),
)
meanwhile = st.lists(foreign, max_size=3)
own = st.one_of(
    st.builds(partial, st.just(apply), names, st.integers(1, 2), meanwhile, meanwhile),
    st.builds(partial, st.just(create), names, meanwhile, meanwhile),
    st.builds(partial, st.just(delete), names, meanwhile, meanwhile),
    st.just(forget),
)


async def play(steps: list[Step]) -> None:
    history = History()
    history.ctx = await history.world.begin()
    for step in steps:
        await step(history)
    history.world.deliver()
    held = {entry.key: entry.version for entry in history.world.collection(Gadget).store}
    objects = history.world.server.objects(Gadget).items()
    assert held == {key: int(found["metadata"]["resourceVersion"]) for key, found in objects}
    assert not history.swallowed(), (
        f"expected every change of others to be a reason to reconcile, lost {history.swallowed()}"
    )


@example(
    [
        partial(apply, "a", 1, [], []),
        forget,
        partial(apply, "a", 1, [partial(others_change, "a", "status")], []),
    ]
)
@given(st.lists(st.one_of(own, foreign), max_size=14))
@examples(150)
def test_no_change_of_others_is_ever_swallowed(steps: list[Step]) -> None:
    """Each of them is a reason to reconcile, and in the end the cache has what the server has."""
    asyncio.run(play(steps))


async def test_undisturbed_writes_cause_no_reconcile() -> None:
    """Otherwise the test above would be passed by claiming nothing."""
    history = History()
    history.ctx = await history.world.begin()
    for step in (partial(apply, "a", 1), partial(apply, "a", 2), partial(create, "b"), partial(delete, "a")):
        await step([], [], history)
        await deliver(9, history)
    await apply("b", 2, [], [partial(deliver, 9)], history)
    await delete("b", [], [partial(deliver, 9)], history)
    assert history.queued == []
