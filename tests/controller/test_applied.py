"""An apply is left out only if it would change nothing, as far as anybody can know."""

from __future__ import annotations

from controller.reaching import KEY, World, gadget, settings
from gadgets import Gadget
from navarch.api import Key
from navarch.cache import Cached, Entry, entry_of
from navarch.client import MergePatch
from navarch.controller.apply_cache import ApplyCache, Child, digest_of
from navarch.k8s.core.v1 import ConfigMap
from scripted import answer, config_map, scripted


async def test_same_object_is_applied_once() -> None:
    """By this process: one that starts anew applies everything once more. What is returned is what the server has."""
    world = World()
    ctx = await world.begin()
    first = await ctx.apply(gadget(size=1))
    again = await ctx.apply(gadget(size=1))
    assert again.metadata.resource_version == first.metadata.resource_version
    world.deliver()
    await world.context().apply(gadget(size=1))
    assert world.sent == ["PATCH a"]
    world.deps.apply_cache.forget(KEY)
    await ctx.apply(gadget(size=1))
    assert world.sent == ["PATCH a"]


async def test_other_object_is_applied() -> None:
    """Another value, a field less, another owner, another child."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1, colour="red"))
    await ctx.apply(gadget(size=2, colour="red"))
    await ctx.apply(gadget(size=2))
    await ctx.apply(gadget("b", size=2))
    assert world.sent == ["PATCH a", "PATCH a", "PATCH a", "PATCH b"]
    assert (await ctx.apply(gadget(size=2))).spec.colour is None
    assert world.sent == []


async def test_change_of_the_status_alone_leaves_it_applied() -> None:
    """However often; the newest object is returned."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    for phase in ("Pending", "Ready"):
        await world.others.patch(Gadget, "a", MergePatch({"status": {"phase": phase}}), subresource="status")
        world.deliver()
        assert (await ctx.apply(gadget(size=1))).status.phase == phase
    assert world.sent == ["PATCH a"]


async def test_annotations_of_others_leave_it_applied() -> None:
    """Ours are applied over, and so is all of what is kept in part only, where more may have changed."""
    for kept, sent in (((), ["PATCH a"]), (("spec.size",), ["PATCH a", "PATCH a"])):
        world = World(Cached(Gadget, keep=kept))
        ctx, wanted = await world.begin(), gadget(size=1)
        wanted.annotations["ours"] = "1"
        await ctx.apply(wanted)
        world.sent.clear()
        await world.others.patch(Gadget, "a", MergePatch({"metadata": {"annotations": {"theirs": "1"}}}))
        world.deliver()
        assert (await ctx.apply(wanted)).annotations == {"ours": "1", "theirs": "1"}
        await world.others.patch(Gadget, "a", MergePatch({"metadata": {"annotations": {"ours": "2"}}}))
        world.deliver()
        assert (await ctx.apply(wanted)).annotations["ours"] == "1"
        assert world.sent == sent


async def test_any_other_change_is_applied_over() -> None:
    """Of the spec, of the metadata, or of a kind that counts no generations."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    await ctx.apply(settings(k="v"))
    world.sent.clear()
    await world.others.patch(Gadget, "a", MergePatch({"spec": {"size": 7}}))
    world.deliver()
    assert (await ctx.apply(gadget(size=1))).spec.size == 1
    await world.others.patch(Gadget, "a", MergePatch({"metadata": {"labels": {"app": "x"}}}))
    await world.others.patch(ConfigMap, "a", MergePatch({"data": {"k": "w"}}))
    world.deliver()
    await ctx.apply(gadget(size=1))
    assert (await ctx.apply(settings(k="v"))).data == {"k": "v"}
    assert world.sent == ["PATCH a", "PATCH a", "PATCH a"]


async def test_deleted_object_is_applied_anew() -> None:
    """By ourselves or by others."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1))
    await world.others.delete(Gadget, "a")
    world.deliver()
    await ctx.apply(gadget(size=1))
    await ctx.delete(Gadget, "a")
    await ctx.apply(gadget(size=1))
    assert [sent for sent in world.sent if sent.startswith("PATCH")] == ["PATCH a", "PATCH a", "PATCH a"]
    assert len(world.server.objects(Gadget)) == 1


async def test_undeclared_kind_is_always_applied() -> None:
    """Nobody would notice a change of it; likewise where the cache cannot give the object back."""
    for world in (World(ConfigMap), World(Cached(Gadget, metadata_only=True))):
        ctx = await world.begin()
        for _ in range(2):
            assert (await ctx.apply(gadget(size=1))).spec.size == 1
        assert world.sent == ["PATCH a", "PATCH a"]


async def test_apply_without_force_is_remembered_too() -> None:
    """It was granted."""
    world = World()
    ctx = await world.begin()
    await ctx.apply(gadget(size=1), force=False)
    await ctx.apply(gadget(size=1), force=False)
    assert [request.query.get("force") for request in world.server.requests[1:]] == [None]


async def test_new_object_that_others_have_written_to_is_not_claimed() -> None:
    """Its version may be theirs; the managers in the answer tell."""
    for managers, claimed in ((["fleet"], True), (["fleet", "others"], False)):
        world = World(ConfigMap)
        await world.begin()
        fields = [{"manager": manager} for manager in managers]
        body = config_map(version=9, metadata={"managedFields": fields, "uid": "u"})
        client, _ = scripted(answer(body), manager="fleet")
        object.__setattr__(world.deps, "client", client)
        await world.context().apply(settings())
        world.collection(ConfigMap).saw(world.collection(ConfigMap).cached.entry(answer(body).chunks[0]))  # type: ignore[arg-type]
        assert [own for _, own in world.heard] == [claimed]


def entry(name: str, version: int = 1) -> Entry:
    return entry_of(b'{"metadata": {"name": "%s", "resourceVersion": "%d"}}' % (name.encode(), version))


def test_generation_that_counts_annotations_leaves_it_applied() -> None:
    """As that of a Deployment does, which gets one from its own controller: only what was asked for counts."""
    applied, child = ApplyCache(), Child(Gadget.__kind__, KEY)
    first = entry_of(b'{"metadata":{"name":"a","resourceVersion":"1","generation":1},"spec":{"size":1}}')
    later = (
        b'{"metadata":{"name":"a","resourceVersion":"2","generation":2,"annotations":{"rev":"1"}},"spec":{"size":%d}}'
    )
    for size, ours, done in ((2, (), False), (1, ("rev",), False), (1, None, False), (1, (), True)):
        applied.remember(KEY, child, b"d", first)
        assert applied.is_done(KEY, child, b"d", entry_of(later % size), ours) is done


def test_memory_is_bounded_by_the_owners_used_last() -> None:
    """Those that were not used for longest are forgotten, whole."""
    applied = ApplyCache(limit=4)
    owners = [Key("default", name) for name in ("x", "y", "z")]
    first, second = (Child(Gadget.__kind__, Key("default", name)) for name in ("a", "b"))
    for owner in owners[:2]:
        for child in (first, second):
            applied.remember(owner, child, b"d", entry("a"))
    assert applied.is_done(owners[0], first, b"d", entry("a"))
    applied.remember(owners[2], first, b"d", entry("a"))
    assert len(applied) == 3
    assert not applied.is_done(owners[1], first, b"d", entry("a"))
    assert applied.is_done(owners[0], second, b"d", entry("a"))
    applied.forget(owners[0], second)
    applied.forget(owners[2])
    assert len(applied) == 1


def test_one_owner_with_more_children_than_fit_is_served_all_the_same() -> None:
    """Its objects are sent more often, and that is all."""
    applied = ApplyCache(limit=2)
    for number in range(10):
        applied.remember(KEY, Child(Gadget.__kind__, Key("default", str(number))), b"d", entry("a"))
    assert len(applied) <= 2


def test_digest_is_of_what_is_wanted_and_by_whom() -> None:
    """What the server says about an object is no wish."""
    kind, read = Gadget.__kind__, gadget(size=1)
    read.metadata.resource_version, read.status.phase = "7", "Ready"
    assert digest_of(read, kind, "o1") == digest_of(gadget(size=1), kind, "o1")
    assert digest_of(read, kind, "o1") != digest_of(read, kind, "o2")
    assert digest_of(read, kind, "o1") != digest_of(gadget(size=2), kind, "o1")
