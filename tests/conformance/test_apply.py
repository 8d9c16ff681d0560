"""Server-side apply: who owns which field."""

import pytest

from gadgets import Gadget, GadgetSpec, GadgetStatus, Part, installed
from navarch.client import Client, JsonPatch, MergePatch, StrategicPatch
from navarch.errors import Conflict, Invalid, NavarchError, UnsupportedMediaType
from navarch.k8s.core.v1 import ConfigMap


def settings(**data: str) -> ConfigMap:
    return ConfigMap(name="a", data=data)


async def test_apply_makes_what_is_not_there_and_owns_it(client: Client) -> None:
    """Under the client's own name."""
    made = await client.using(manager="ours").apply(settings(k="v"))
    [owner] = made.metadata.managed_fields
    assert (owner.manager, owner.operation) == ("ours", "Apply")


async def test_apply_of_the_same_changes_nothing(client: Client) -> None:
    """Not even the revision, so that it wakes nobody."""
    first = await client.apply(settings(k="v"))
    again = await client.apply(settings(k="v"))
    assert again.metadata.resource_version == first.metadata.resource_version


async def test_apply_can_be_tied_to_a_version(client: Client) -> None:
    """Of an object that is there; one that is not is created all the same. Nothing is changed by what changes nothing."""
    version = (await client.apply(settings(k="v"))).metadata.resource_version
    assert (await client.apply(settings(k="v"), resource_version=version)).metadata.resource_version == version
    await client.apply(settings(k="w"), resource_version=version)
    with pytest.raises(Conflict) as caught:
        await client.apply(settings(k="w"), resource_version=version, force=True)
    assert caught.value.managers == ()
    await client.delete(ConfigMap, "a")
    assert (await client.apply(settings(k="x"), resource_version=version)).data == {"k": "x"}


async def test_field_that_is_no_longer_wanted_goes(client: Client) -> None:
    """Unless somebody else wants it too."""
    ours, theirs = client.using(manager="ours"), client.using(manager="theirs")
    await ours.apply(settings(a="1", b="2", c="3"))
    await theirs.apply(settings(b="2"))
    assert (await ours.apply(settings(a="1"))).data == {"a": "1", "b": "2"}


async def test_conflict_names_who_is_in_the_way_and_of_what(client: Client) -> None:
    """All of them; nothing is changed."""
    await client.using(manager="kubectl").apply(settings(a="1"))
    await client.using(manager="helm").apply(settings(b="1"))
    with pytest.raises(Conflict) as caught:
        await client.using(manager="ours").apply(settings(a="2", b="2"))
    assert set(caught.value.managers) == {"kubectl", "helm"}
    assert "kubectl owns .data.a" in str(caught.value)
    assert "helm owns .data.b" in str(caught.value)
    assert "force=True" in str(caught.value)
    assert (await client.get(ConfigMap, "a")).data == {"a": "1", "b": "1"}


async def test_force_takes_the_field_over(client: Client) -> None:
    """From then on it is the other who conflicts."""
    ours, theirs = client.using(manager="ours"), client.using(manager="theirs")
    await theirs.apply(settings(a="1"))
    assert (await ours.apply(settings(a="2"), force=True)).data == {"a": "2"}
    with pytest.raises(Conflict) as caught:
        await theirs.apply(settings(a="3"))
    assert caught.value.managers == ("ours",)


async def test_writer_that_does_not_apply_is_named_too(client: Client) -> None:
    """Updates own what they set."""
    await client.using(manager="editor").create(settings(a="1"))
    with pytest.raises(Conflict) as caught:
        await client.using(manager="ours").apply(settings(a="2"))
    assert caught.value.managers == ("editor",)


async def test_lists_are_merged_by_their_keys(client: Client) -> None:
    """Each manager has its own items."""
    await installed(client)
    ours, theirs = client.using(manager="ours"), client.using(manager="theirs")
    await ours.apply(Gadget(name="a", spec=GadgetSpec(parts=[Part(name="wheel", count=4)])))
    both = await theirs.apply(Gadget(name="a", spec=GadgetSpec(parts=[Part(name="bell")])))
    assert {part.name: part.count for part in both.spec.parts or []} == {"wheel": 4, "bell": 1}
    left = await ours.apply(Gadget(name="a", spec=GadgetSpec(parts=[])))
    assert [part.name for part in left.spec.parts or []] == ["bell"]


async def test_explicit_default_is_owned(client: Client) -> None:
    """A value that equals the class's default is a value: nobody else may change it unnoticed."""
    await installed(client)
    await client.using(manager="ours").apply(Gadget(name="a", spec=GadgetSpec(parts=[Part(name="bell")])))
    with pytest.raises(Conflict, match=r"ours owns .*count"):
        await client.using(manager="theirs").apply(
            Gadget(name="a", spec=GadgetSpec(parts=[Part(name="bell", count=2)]))
        )


async def test_status_is_applied_apart(client: Client) -> None:
    """Through its own door, without touching the spec or the generation."""
    await installed(client)
    await client.apply(Gadget(name="a", spec=GadgetSpec(size=1), status=GadgetStatus(phase="Ignored")))
    wanted = Gadget(name="a", status=GadgetStatus(phase="Ready"))
    applied = await client.apply(wanted, subresource="status")
    assert (applied.spec.size, applied.status.phase, applied.metadata.generation) == (1, "Ready", 1)
    again = await client.apply(Gadget(name="a", spec=GadgetSpec(size=2)))
    assert (again.spec.size, again.status.phase, again.metadata.generation) == (2, "Ready", 2)


async def test_what_was_read_can_be_applied(client: Client) -> None:
    """What the server says of it is left out: an apply with managed fields or a stale revision would be refused."""
    await client.create(settings(a="1"))
    found = await client.get(ConfigMap, "a")
    await client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"x": "y"}}}))
    found.data = {"a": "2"}
    applied = await client.using(manager="ours").apply(found, force=True)
    assert (applied.data, applied.labels) == ({"a": "2"}, {"x": "y"})


async def test_unknown_field_is_refused_and_its_object_not_shown(client: Client) -> None:
    """At once: the server calls it its own failure, but trying again does not help."""
    await installed(client)
    odd = Gadget.from_json(b'{"metadata":{"name":"a"},"spec":{"sise":{"secret":"hunter2"}}}')
    with pytest.raises(NavarchError, match="sise") as caught:
        await client.apply(odd)
    assert "hunter2" not in str(caught.value)


async def test_patch_that_the_server_refuses_without_a_reason_has_one(client: Client) -> None:
    """Its own words are that there is an error in our request, and which media types there are."""
    await installed(client)
    await client.create(Gadget(name="a", spec=GadgetSpec(size=1)))
    with pytest.raises(UnsupportedMediaType, match="custom kinds take no strategic merge patch; use MergePatch"):
        await client.patch(Gadget, "a", StrategicPatch({"spec": {"size": 2}}))
    for operation in ({"op": "test", "path": "/spec/size", "value": 9}, {"op": "remove", "path": "/spec/nothing"}):
        with pytest.raises(Invalid, match="nothing at its path, or a test failed"):
            await client.patch(Gadget, "a", JsonPatch([operation]))
