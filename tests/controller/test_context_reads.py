"""`ctx.get` and `ctx.list`: from the cache where it knows, from the server where it does not."""

from __future__ import annotations

import pytest

from controller.reaching import World, gadget, settings
from gadgets import CONFIG_MAP, Gadget
from navarch.api import Dynamic, owner_reference, to_builtins
from navarch.cache import Cached
from navarch.client import ALL, MergePatch, MetadataOnly, PartialObjectMetadata
from navarch.errors import DecodeError, InvalidValueError, NotFound
from navarch.k8s.core.v1 import ConfigMap, Namespace, Secret


async def test_declared_kind_is_read_from_the_cache_and_shared() -> None:
    """No request; the same object for everybody, until it changes."""
    world = World()
    ctx = await world.begin()
    await world.others.create(gadget(size=1))
    assert await ctx.get(Gadget, "a") is None
    world.deliver()
    world.sent.clear()
    found = await ctx.get(Gadget, "a")
    assert found is not None
    assert found.spec.size == 1
    assert found is await ctx.get(Gadget, "a")
    assert await ctx.list(Gadget) == [found]
    assert not [sent for sent in world.sent if sent.startswith("GET")]


async def test_undeclared_kind_is_asked_of_the_server() -> None:
    """And one that is not there is None."""
    world = World(Gadget)
    ctx = await world.begin()
    await world.others.create(settings(k="v"))
    await world.others.create(settings("b", k="w"))
    found = await ctx.get(ConfigMap, "a")
    assert found is not None
    assert found.data == {"k": "v"}
    assert await ctx.get(ConfigMap, "c") is None
    assert sorted(each.name for each in await ctx.list(ConfigMap)) == ["a", "b"]


async def test_kind_that_the_server_does_not_know_is_an_error() -> None:
    """It is not the same as an object that is not there."""
    ctx = await World().begin()
    with pytest.raises(NotFound, match="the server does not serve /api/v1/namespaces/default/secrets/a"):
        await ctx.get(Secret, "a")


async def test_selection_makes_no_object_invisible() -> None:
    """What it does not have is asked of the server; what it has is not."""
    world = World(Cached(Gadget, labels="app=web"))
    ctx = await world.begin()
    await world.others.create(gadget(size=1))
    other = gadget("b")
    other.labels = {"app": "web"}
    await world.others.create(other)
    world.collection(Gadget).saw(world.collection(Gadget).cached.entry((await world.others.get(Gadget, "b")).__wire__))
    world.sent.clear()
    assert await ctx.get(Gadget, "b") is not None
    assert world.sent == []
    found = await ctx.get(Gadget, "a")
    assert found is not None
    assert await ctx.get(Gadget, "c") is None
    assert world.sent == ["GET a", "GET c"]
    assert [each.name for each in await ctx.list(Gadget)] == ["b"]


async def test_namespace_is_the_owners_another_or_all() -> None:
    """A kind that has none needs none."""
    world = World(Gadget)
    ctx = await world.begin()
    await world.others.create(gadget("near"))
    await world.others.create(gadget("far"), namespace="elsewhere")
    world.deliver()
    assert [each.name for each in await ctx.list(Gadget)] == ["near"]
    assert [each.name for each in await ctx.list(Gadget, namespace="elsewhere")] == ["far"]
    assert len(await ctx.list(Gadget, namespace=ALL)) == 2
    assert await ctx.get(Gadget, "far", namespace="elsewhere") is not None
    assert await ctx.get(Gadget, "far") is None
    with pytest.raises(InvalidValueError, match="cluster-scoped"):
        await ctx.get(Namespace, "a", namespace="default")
    with pytest.raises(InvalidValueError, match="one namespace"):
        await ctx.get(Gadget, "a", namespace=ALL)


async def test_namespace_that_is_not_kept_is_asked_of_the_server() -> None:
    """Also for a list of all of them."""
    world = World(Gadget)
    world.collection(Gadget).namespaces = {"default"}
    ctx = await world.begin()
    await world.others.create(gadget("far"), namespace="elsewhere")
    assert await ctx.get(Gadget, "far", namespace="elsewhere") is not None
    assert [each.name for each in await ctx.list(Gadget, namespace=ALL)] == ["far"]


async def test_list_is_narrowed_by_labels_fields_and_index() -> None:
    """Labels as text, as a mapping, and together with an index; fields are the server's affair."""
    world = World(Cached(Gadget, indexes={"colour": lambda found: [found.spec.colour]}))
    ctx = await world.begin()
    for name, colour, app in (("a", "red", "web"), ("b", "red", "db"), ("c", "blue", "web")):
        new = gadget(name, colour=colour)
        new.labels = {"app": app}
        await world.others.create(new)
    world.deliver()
    assert sorted(each.name for each in await ctx.list(Gadget, labels="app=web")) == ["a", "c"]
    assert [each.name for each in await ctx.list(Gadget, labels={"app": "db"})] == ["b"]
    assert sorted(each.name for each in await ctx.list(Gadget, index=("colour", "red"))) == ["a", "b"]
    assert [each.name for each in await ctx.list(Gadget, index=("colour", "red"), labels="app=web")] == ["a"]
    assert await ctx.list(Gadget, index=("colour", "red"), namespace="elsewhere") == []
    assert [each.name for each in await ctx.list(Gadget, fields="spec.colour=blue")] == ["c"]


async def test_index_that_was_not_declared_is_refused_with_the_remedy() -> None:
    """Of a kind that is cached, and of one that is not."""
    ctx = await World(Gadget).begin()
    with pytest.raises(InvalidValueError, match=r"Cached\(Gadget, indexes=\{'colour'"):
        await ctx.list(Gadget, index=("colour", "red"))
    with pytest.raises(InvalidValueError, match=r"declare reads=\(Cached\(ConfigMap, indexes"):
        await ctx.list(ConfigMap, index=("colour", "red"))


async def test_object_that_does_not_fit_is_left_out_of_lists_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once for each version; asking for it by name says what is wrong."""
    world = World(Gadget)
    ctx = await world.begin()
    await world.others.create(gadget("good"))
    await world.others.create(gadget())
    patch = MergePatch({"spec": {"size": "huge"}})
    await world.others.patch(Gadget.__kind__, "a", patch)
    world.deliver()
    for _ in range(3):
        assert [each.name for each in await ctx.list(Gadget)] == ["good"]
    assert caplog.text.count("the list leaves out") == 1
    await world.others.patch(Gadget.__kind__, "a", MergePatch({"spec": {"size": "vast"}}))
    world.deliver()
    await ctx.list(Gadget)
    assert caplog.text.count("the list leaves out") == 2
    with pytest.raises(DecodeError, match="default/a"):
        await ctx.get(Gadget, "a")
    assert [each.name for each in await World(ConfigMap).context().list(Gadget)] == []


async def test_object_that_does_not_fit_is_left_out_of_what_the_server_lists(caplog: pytest.LogCaptureFixture) -> None:
    """As from the cache."""
    world = World(ConfigMap)
    ctx = await world.begin()
    await world.others.create(gadget("good"))
    await world.others.create(gadget())
    await world.others.patch(Gadget.__kind__, "a", MergePatch({"spec": {"size": "huge"}}))
    for _ in range(2):
        assert [each.name for each in await ctx.list(Gadget)] == ["good"]
    assert caplog.text.count("the list leaves out gadgets.test.example.com default/a") == 1


async def test_metadata_is_read_from_the_cache_where_it_was_declared_so() -> None:
    """The whole object is asked of the server: nobody gets less than the type says."""
    world = World(Cached(ConfigMap, metadata_only=True))
    ctx = await world.begin()
    await world.others.create(settings(k="v"))
    entry = await world.others.get(MetadataOnly(ConfigMap), "a")
    world.collection(ConfigMap).saw(world.collection(ConfigMap).cached.entry(entry.__wire__))
    world.sent.clear()
    assert isinstance(await ctx.get(MetadataOnly(ConfigMap), "a"), PartialObjectMetadata)
    assert isinstance((await ctx.list(MetadataOnly(ConfigMap)))[0], PartialObjectMetadata)
    assert world.sent == []
    whole = await ctx.get(ConfigMap, "a")
    assert whole is not None
    assert whole.data == {"k": "v"}


async def test_kind_without_a_class_reads_the_same_cache() -> None:
    """A class and its kind are two ways to ask for the same."""
    world = World(ConfigMap)
    ctx = await world.begin()
    await world.others.create(settings(k="v"))
    world.deliver()
    kind = ConfigMap.__kind__
    world.sent.clear()
    found = await ctx.get(kind, "a")
    assert isinstance(found, Dynamic)
    assert found["data"] == {"k": "v"}
    assert world.sent == []
    assert (await ctx.list(CONFIG_MAP))[0].name == "a"


async def test_owned_are_those_that_the_owner_controls() -> None:
    """Not what merely has it among its owners, nor what is nobody's."""
    world = World()
    ctx = await world.begin()
    await ctx.create(gadget("child", size=1))
    await ctx.create(gadget("stranger", size=1), owned=False)
    mentioned = gadget("mentioned", size=1)
    mentioned.metadata.owner_references = [owner_reference(world.owner, controller=False)]
    await ctx.create(mentioned, owned=False)
    assert [found.name for found in ctx.owned(Gadget)] == ["child"]


async def test_owned_are_of_the_owners_namespace() -> None:
    """Anybody may write the uid of an owner on an object of another namespace."""
    ctx = await World(owned=(Gadget,)).begin()
    await ctx.create(gadget("child", size=1))
    claimed = await ctx.create(Gadget(name="claimed"))
    stranger = Gadget(name="stranger", namespace="elsewhere")
    stranger.metadata.owner_references = claimed.metadata.owner_references
    await ctx.create(stranger, owned=False)
    assert sorted(found.name for found in ctx.owned(Gadget)) == ["child", "claimed"]


async def test_owned_needs_a_kind_that_was_declared_as_such() -> None:
    """A kind that is only read may have children that nobody follows."""
    ctx = await World(owned=(ConfigMap,)).begin()
    with pytest.raises(InvalidValueError, match="owns="):
        ctx.owned(Gadget)


async def test_orphans_are_those_that_match_and_nobody_controls() -> None:
    """Of the owner's namespace alone; one that is adopted is no orphan any more."""
    world = World()
    ctx = await world.begin()
    for name, labels in {"match": {"a": "b"}, "other": {"a": "c"}, "child": {"a": "b"}}.items():
        await ctx.create(Gadget(name=name, labels=labels), owned=name == "child")
    await ctx.create(Gadget(name="elsewhere", namespace="elsewhere", labels={"a": "b"}), owned=False)
    (orphan,) = ctx.orphans(Gadget, {"a": "b"})
    assert orphan.name == "match"
    await ctx.patch(orphan, {"metadata": {"ownerReferences": [to_builtins(owner_reference(world.owner))]}})
    assert ctx.orphans(Gadget, {"a": "b"}) == []
    assert sorted(found.name for found in ctx.owned(Gadget)) == ["child", "match"]
