"""What a context writes is readable at once, belongs to its owner, and does not trigger whoever wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from controller.reaching import KEY, US, World, gadget, settings
from gadgets import CONFIG_MAP, Gadget
from navarch.api import Dynamic, Key, controller_of, decode
from navarch.cache import Cached, Entry
from navarch.client import MergePatch, Request, Response
from navarch.controller.triggers import Version, Writer
from navarch.errors import AlreadyExists, Conflict, InvalidValueError
from navarch.k8s.core.v1 import ConfigMap, Namespace


async def test_apply_owns_places_and_leaves_the_callers_object_alone() -> None:
    """The answer is what the server has."""
    world = World()
    ctx = await world.begin()
    desired = gadget(size=1)
    applied = await ctx.apply(desired)
    owner = controller_of(applied)
    assert owner is not None
    assert (owner.uid, applied.namespace, applied.metadata.uid != "") == (world.owner.metadata.uid, "default", True)
    assert (desired.namespace, desired.metadata.owner_references) == ("", [])
    unowned = await ctx.apply(settings(k="v"), owned=False)
    assert (controller_of(unowned), unowned.namespace) == (None, "default")
    bare = Dynamic({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}})
    assert (await ctx.apply(bare)).metadata["ownerReferences"]
    assert bare == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}}


async def test_object_without_a_namespace_cannot_be_owned_from_within_one() -> None:
    """The garbage collector would delete it."""
    ctx = await World().begin()
    with pytest.raises(InvalidValueError, match="owned=False"):
        await ctx.apply(Namespace(name="a"))


async def test_object_cannot_be_its_own_child() -> None:
    """It would name itself as its owner, and what is asked of it would be the operator's."""
    world = World()
    ctx = await world.begin()
    for write in (ctx.apply, ctx.create):
        with pytest.raises(InvalidValueError, match=r"cannot be its own child; .* ctx\.patch\(object"):
            await write(world.owner)


async def test_own_writes_are_read_at_once_although_the_watch_is_behind() -> None:
    """Apply, create and delete."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    await ctx.create(settings("b", k="v"))
    assert [each.spec.size for each in await ctx.list(Gadget)] == [1]
    found = await ctx.get(ConfigMap, "b")
    assert found is not None
    assert found.data == {"k": "v"}
    await ctx.apply(gadget(size=2))
    assert [each.spec.size for each in await ctx.list(Gadget)] == [2]
    assert await ctx.delete(Gadget, "a") is True
    assert await ctx.get(Gadget, "a") is None
    world.deliver(2)
    assert await ctx.get(Gadget, "a") is None
    world.deliver()
    assert (await ctx.get(Gadget, "a"), world.changes[-1].writer) == (None, US)


async def test_own_writes_do_not_trigger_whoever_wrote_them() -> None:
    """Neither a new object, nor a changed or a deleted one."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    await ctx.apply(gadget(size=2))
    await ctx.create(settings("b"))
    await ctx.delete(ConfigMap, "b")
    world.deliver()
    assert world.heard == [("a", True), ("a", True), ("b", True), ("b", True)]


async def test_change_of_others_that_an_apply_leaves_as_it_is_still_triggers() -> None:
    """The server answers an apply that changes nothing with whatever version there is: with theirs."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    world.deliver()
    world.deps.apply_cache.forget(KEY)
    world.changes.clear()
    await world.others.patch(Gadget, "a", MergePatch({"status": {"phase": "Ready"}}), subresource="status")
    applied = await ctx.apply(gadget(size=1))
    assert applied.status.phase == "Ready"
    world.deliver()
    assert world.heard == [("a", False)]
    assert world.retracted == []


async def test_apply_goes_out_although_somebody_else_was_faster() -> None:
    """What he wrote triggers, and so does ours on top of it."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    world.deliver()
    world.changes.clear()
    await world.others.patch(Gadget, "a", MergePatch({"spec": {"replicas": 3}}))
    applied = await ctx.apply(gadget(size=2))
    assert (applied.spec.size, applied.spec.replicas) == (2, 3)
    assert [each.spec.size for each in await ctx.list(Gadget)] == [2]
    world.deliver()
    assert world.heard == [("a", False), ("a", False)]


class Faster:
    """A transport on which the watch shows a write before it is answered."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.origin = server.origin
        self.host = server.host
        self.connect = server.connect
        self.close = server.close
        self.world: World | None = None

    async def send(self, request: Request) -> Response:
        answer: Response = await self.server.send(request)
        if self.world is not None:
            self.world.deliver()
        return answer


async def test_echo_that_is_faster_than_the_answer_is_taken_back() -> None:
    """As a reason to reconcile the key that wrote, with the version as the token."""
    wires: list[Faster] = []

    def wire(server: Any) -> Faster:
        wires.append(Faster(server))
        return wires[0]

    world = World(transport=wire)
    wires[0].world = world
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    first = world.version(Gadget)
    await ctx.apply(gadget(size=2))
    assert world.retracted == [(KEY, first), (KEY, world.version(Gadget))]
    await world.others.patch(Gadget, "a", MergePatch({"spec": {"replicas": 3}}))
    await ctx.apply(gadget(size=3))
    last = world.version(Gadget)
    await ctx.delete(Gadget, "a")
    assert world.retracted[2:] == [(KEY, last.end)]


async def test_created_object_exists_or_is_refused() -> None:
    """As the server says."""
    ctx = await World().begin()
    await ctx.create(gadget())
    with pytest.raises(AlreadyExists):
        await ctx.create(gadget())
    generated = gadget("")
    generated.metadata.generate_name = "g-"
    made = await ctx.create(generated)
    assert await ctx.get(Gadget, made.name) is not None


async def test_deleting_what_is_not_there_is_no_error() -> None:
    """It says so; and a cache that does not know yet learns it."""
    world = World()
    ctx = await world.begin()
    assert await ctx.delete(Gadget, "a") is False
    made = await ctx.create(gadget())
    await world.others.delete(Gadget, "a")
    assert await ctx.delete(made) is False
    assert await ctx.get(Gadget, "a") is None
    world.deliver()
    assert world.heard[-1] == ("a", False)


async def test_delete_means_the_object_that_was_read() -> None:
    """Another one that has taken its name is left alone: of an object silently, of a name with an error."""
    world = World()
    ctx = await world.begin()
    made = await ctx.create(gadget())
    await world.others.delete(Gadget, "a")
    await world.others.create(gadget())
    with pytest.raises(Conflict):
        await ctx.delete(Gadget, "a")
    assert await ctx.delete(made) is False
    assert len(world.server.objects(Gadget)) == 1
    world.deliver()
    assert await ctx.delete(Gadget, "a") is True
    assert await ctx.delete(CONFIG_MAP, "a") is False


async def test_object_that_waits_for_its_finalizers_is_read_as_going() -> None:
    """It is still there; the deletion mark may be somebody else's, so it triggers."""
    world = World()
    ctx = await world.begin()
    new = gadget()
    new.metadata.finalizers = ["example.com/wait"]
    await ctx.create(new)
    world.deliver()
    world.changes.clear()
    assert await ctx.delete(Gadget, "a") is True
    found = await ctx.get(Gadget, "a")
    assert found is not None
    assert found.metadata.deletion_timestamp is not None
    world.deliver()
    assert world.heard == [("a", False)]


async def test_delete_says_how_and_needs_a_name() -> None:
    """In the background by default: some kinds would leave what they own behind."""
    world = World()
    ctx = await world.begin()
    await ctx.create(gadget())
    await ctx.delete(Gadget, "a", propagation="Foreground", grace_seconds=5)
    await ctx.delete(Gadget, "b")
    bodies = [decode(dict[str, Any], request.body or b"") for request in world.server.requests[-2:]]
    assert [body["propagationPolicy"] for body in bodies] == ["Foreground", "Background"]
    assert (bodies[0]["gracePeriodSeconds"], "uid" in bodies[0]["preconditions"]) == (5, True)
    with pytest.raises(InvalidValueError, match="expected the name"):
        await ctx.delete(Gadget, "")


async def test_every_changing_write_is_noted_once() -> None:
    """With what was before; a write that changes nothing is none."""
    noted: list[tuple[Writer, Version, Entry | None, Entry]] = []
    world = World(on_write=lambda *write: noted.append(write))
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    first = world.version(Gadget)
    world.deps.apply_cache.forget(KEY)
    await ctx.apply(gadget(size=1))
    await ctx.apply(gadget(size=2))
    assert [(writer, version, old and old.version) for writer, version, old, _ in noted] == [
        (US, first, None),
        (US, world.version(Gadget), first.version),
    ]
    assert noted[-1][3].version == world.version(Gadget).version


async def test_dry_run_changes_nothing_in_the_cache() -> None:
    """Nothing was written."""
    world = World(dry_run=True)
    ctx = await world.begin()
    await world.others.create(gadget(size=1))
    world.deliver()
    for _ in range(2):
        assert (await ctx.apply(gadget(size=2))).spec.size == 2
    await ctx.delete(Gadget, "a")
    await ctx.create(gadget("b"))
    assert [each.spec.size for each in await ctx.list(Gadget)] == [1]
    assert len(world.deps.apply_cache) == 0


async def test_write_outside_of_a_selection_is_not_kept() -> None:
    """But one inside is."""
    world = World(Cached(Gadget, labels="app=web"))
    ctx = await world.begin()
    await ctx.apply(gadget("out"))
    inside = gadget("in")
    inside.labels = {"app": "web"}
    await ctx.apply(inside)
    assert [entry.key for entry in world.collection(Gadget).store] == [Key("default", "in")]


async def test_child_outside_of_a_selection_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody is called when it changes: most often a label was forgotten."""
    ctx = await World(Cached(ConfigMap, labels="app=web")).begin()
    inside = settings()
    inside.labels["app"] = "web"
    await ctx.apply(inside)
    await ctx.apply(settings("free"), owned=False)
    assert not caplog.messages
    for name in ("b", "c"):
        await ctx.apply(settings(name))
    (told,) = caplog.messages
    assert (
        "the reconciler writes ConfigMap b as a child, but its labels do not match the declared selector app=web"
        in told
    )


async def test_patch_changes_what_was_read_and_does_not_trigger_its_writer() -> None:
    """It is readable at once, and its echo is known."""
    world = World()
    ctx = await world.begin()
    await world.others.create(gadget(size=1))
    world.deliver()
    (found,) = await ctx.list(Gadget)
    world.changes.clear()
    patched = await ctx.patch(found, {"spec": {"size": 5}, "metadata": {"labels": {"a": "b"}}})
    (seen,) = await ctx.list(Gadget)
    assert (patched.spec.size, seen.spec.size, seen.labels, found.spec.size) == (5, 5, {"a": "b"}, 1)
    world.deliver()
    assert world.heard == [("a", True)]


async def test_patch_of_what_has_changed_since_is_a_conflict() -> None:
    """What was decided by the old version is not written over the new one."""
    world = World()
    ctx = await world.begin()
    found = await world.others.create(gadget(size=1))
    world.deliver()
    await world.others.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
    with pytest.raises(Conflict):
        await ctx.patch(found, {"spec": {"size": 5}})
    assert (await world.others.get(Gadget, "a")).spec.size == 2


async def test_patch_of_what_was_never_read_is_refused() -> None:
    """Without a version nobody could tell whether it changed."""
    ctx = await World().begin()
    with pytest.raises(InvalidValueError, match="without a version"):
        await ctx.patch(gadget(size=1), {"spec": {"size": 5}})


async def test_object_that_goes_with_its_last_finalizer_is_gone_at_once() -> None:
    """A patch that takes the finalizer of an object on its way out is its deletion."""
    world = World()
    ctx = await world.begin()
    held = gadget(size=1)
    held.metadata.finalizers = ["example.org/f"]
    await world.others.create(held)
    await world.others.delete(Gadget, "a")
    world.deliver()
    (found,) = await ctx.list(Gadget)
    await ctx.patch(found, {"metadata": {"finalizers": None}})
    assert await ctx.list(Gadget) == []
