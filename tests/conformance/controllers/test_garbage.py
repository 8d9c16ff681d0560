"""Garbage collection: what becomes of objects when their owners go."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.controllers.watching import for_a_while, until, until_event, until_gone
from gadgets import Gadget, installed
from navarch.api import Object, ObjectMeta, OwnerReference
from navarch.client import Client, JsonPatch, Preconditions
from navarch.errors import NotFound
from navarch.k8s.core.v1 import ConfigMap, Namespace, Secret
from navarch.k8s.rbac.v1 import ClusterRole

FINALIZER = "example.com/hold"


def owned_by(*owners: Object, blocks: bool | None = None, **changes: str) -> list[OwnerReference]:
    return [
        OwnerReference(
            api_version=owner.api_version,
            kind=owner.kind,
            name=changes.get("name", owner.name),
            uid=changes.get("uid", owner.metadata.uid),
            block_owner_deletion=blocks,
        )
        for owner in owners
    ]


async def made(client: Client, name: str, *owners: Object, blocks: bool | None = None, **metadata: Any) -> ConfigMap:
    new = ConfigMap(name=name, data={"a": "b"})
    new.metadata.owner_references = owned_by(*owners, blocks=blocks)
    for field, value in metadata.items():
        setattr(new.metadata, field, value)
    return await client.create(new)


async def owners_of(client: Client, name: str) -> set[str]:
    found = await client.get(ConfigMap, name)
    return {owner.name for owner in found.metadata.owner_references or ()}


async def test_background_deletion_takes_children_and_grandchildren(client: Client) -> None:
    """The owner goes at once, what it owned soon after, to the last generation."""
    owner = await made(client, "owner")
    child = await made(client, "child", owner)
    await made(client, "grandchild", child)
    await client.delete(ConfigMap, "owner", propagation="Background")
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "owner")
    await until_gone(client, ConfigMap, "child")
    await until_gone(client, ConfigMap, "grandchild")


async def test_foreground_deletion_takes_children_that_block_first(client: Client) -> None:
    """The owner waits for children that block its deletion, and for no others."""
    owner = await made(client, "owner")
    await made(client, "blocking", owner, blocks=True, finalizers=[FINALIZER])
    await made(client, "free", owner, finalizers=[FINALIZER])
    await client.delete(ConfigMap, "owner", propagation="Foreground")
    for name in ("blocking", "free"):
        await until(
            lambda name=name: client.get(ConfigMap, name),  # type: ignore[misc]  # bound at once
            lambda found: found.metadata.deletion_timestamp is not None,
            f"{name} to be deleted before its owner",
        )
    assert (await client.get(ConfigMap, "owner")).metadata.finalizers == ["foregroundDeletion"]
    await client.patch(ConfigMap, "blocking", JsonPatch([{"op": "remove", "path": "/metadata/finalizers"}]))
    await until_gone(client, ConfigMap, "owner")
    assert (await client.get(ConfigMap, "free")).metadata.deletion_timestamp is not None
    await client.patch(ConfigMap, "free", JsonPatch([{"op": "remove", "path": "/metadata/finalizers"}]))


async def test_foreground_deletion_goes_down_all_generations(client: Client) -> None:
    """A child that has children of its own is deleted in the foreground, too."""
    owner = await made(client, "owner")
    child = await made(client, "child", owner, blocks=True)
    await made(client, "grandchild", child, blocks=True, finalizers=[FINALIZER])
    await client.delete(ConfigMap, "owner", propagation="Foreground")
    found = await until(
        lambda: client.get(ConfigMap, "child"),
        lambda found: found.metadata.deletion_timestamp is not None,
        "the child to be deleted",
    )
    assert found.metadata.finalizers == ["foregroundDeletion"]
    await until(
        lambda: client.get(ConfigMap, "grandchild"),
        lambda found: found.metadata.deletion_timestamp is not None,
        "the grandchild to be deleted",
    )
    await client.patch(ConfigMap, "grandchild", JsonPatch([{"op": "remove", "path": "/metadata/finalizers"}]))
    await until_gone(client, ConfigMap, "owner")


async def test_orphan_deletion_leaves_children_without_owner(client: Client) -> None:
    """The children stay, and no longer name the owner."""
    owner, other = await made(client, "owner"), await made(client, "other")
    await made(client, "child", owner)
    await made(client, "shared", owner, other)
    await client.delete(ConfigMap, "owner", propagation="Orphan")
    await until_gone(client, ConfigMap, "owner")
    assert await owners_of(client, "child") == set()
    assert await owners_of(client, "shared") == {"other"}


async def test_child_of_two_owners_stays_until_both_are_gone(client: Client) -> None:
    """An owner that is gone is taken off; the child goes with the last one."""
    first, second = await made(client, "first"), await made(client, "second")
    await made(client, "child", first, second)
    await client.delete(ConfigMap, "first")
    await until(lambda: owners_of(client, "child"), lambda found: found == {"second"}, "the first owner to be off")
    await client.delete(ConfigMap, "second")
    await until_gone(client, ConfigMap, "child")


async def test_child_of_an_owner_that_never_was_goes(client: Client) -> None:
    """An owner that cannot be found is gone: by uid, whatever has its name now."""
    owner = await made(client, "owner")
    for name, owner_name in (("nameless", "nobody"), ("impostor", "owner")):
        new = ConfigMap(name=name)
        new.metadata.owner_references = owned_by(owner, name=owner_name, uid="1-2-3")
        await client.create(new)
        await until_gone(client, ConfigMap, name)


async def test_child_of_a_kind_that_is_not_served_stays(client: Client) -> None:
    """Nothing is deleted because of an owner that cannot be looked for."""
    new = ConfigMap(name="child")
    new.metadata.owner_references = [
        OwnerReference(api_version="nowhere.example.com/v1", kind="Unknown", name="owner", uid="1-2-3")
    ]
    await client.create(new)
    await for_a_while(lambda: client.get(ConfigMap, "child"), lambda found: found, "the child to stay", seconds=1)


async def test_owner_in_another_namespace_is_none(client: Client) -> None:
    """The child goes, and an event says why."""
    owner = await made(client, "owner")
    elsewhere = (await client.create(Namespace(metadata=ObjectMeta(generate_name="elsewhere-")))).name
    child = ConfigMap(name="child", namespace=elsewhere)
    child.metadata.owner_references = owned_by(owner)
    await client.create(child)
    await until_gone(client.using(namespace=elsewhere), ConfigMap, "child")
    await until_event(
        client.using(namespace=elsewhere), "child", "OwnerRefInvalidNamespace", "ownerRef [v1/ConfigMap, "
    )
    await client.delete(Namespace, elsewhere)


async def test_object_in_a_namespace_goes_with_a_cluster_scoped_owner(client: Client) -> None:
    """An owner may be in no namespace."""
    owner = await client.create(ClusterRole(metadata=ObjectMeta(generate_name="owner-")))
    await made(client, "child", owner)
    await client.delete(ClusterRole, owner.name)
    await until_gone(client, ConfigMap, "child")


async def test_cluster_scoped_object_stays_with_an_owner_in_a_namespace(client: Client) -> None:
    """Such an owner cannot be looked for, and so is never taken for gone."""
    owner = await made(client, "owner")
    role = ClusterRole(metadata=ObjectMeta(generate_name="child-"))
    role.metadata.owner_references = owned_by(owner)
    role = await client.create(role)
    await client.delete(ConfigMap, "owner")
    await for_a_while(lambda: client.get(ClusterRole, role.name), lambda found: found, "the child to stay", seconds=1)
    await client.delete(ClusterRole, role.name)


async def test_owners_may_be_of_different_kinds(client: Client) -> None:
    """The kind of an owner is told by its apiVersion and kind."""
    owner = await client.create(Secret(name="owner"))
    await made(client, "child", owner)
    await client.delete(Secret, "owner", preconditions=Preconditions(uid=owner.metadata.uid))
    await until_gone(client, ConfigMap, "child")


async def test_children_of_custom_kinds_go_too(client: Client) -> None:
    """Kinds that come while the collector runs are watched as soon as they are served."""
    await installed(client)
    owner = await client.create(Gadget(name="owner"))
    await made(client, "child", owner)
    await client.delete(Gadget, "owner")
    await until_none_is_called(client, ConfigMap, "child")
    second = await made(client, "second")
    child = Gadget(name="child")
    child.metadata.owner_references = owned_by(second)
    await client.create(child)
    await client.delete(ConfigMap, "second")
    await until_none_is_called(client, Gadget, "child")


async def until_none_is_called(client: Client, kind: type[Object], name: str) -> None:
    """Kubernetes looks for new kinds every half minute, and then lists their objects."""

    async def names() -> set[str]:
        return {found.name for found in await client.list(kind)}

    await until(names, lambda found: name not in found, f"no {kind.__name__} called {name}", seconds=120)
