"""Who owns whom."""

import copy
from typing import Any

import pytest

from navarch.api import (
    Dynamic,
    Object,
    ObjectMeta,
    OwnerReference,
    Resource,
    Spec,
    controller_of,
    is_owned_by,
    owner_reference,
    set_controller,
)
from navarch.errors import InvalidValueError


class Parent(Resource[Spec, None], group="example.com", version="v1"): ...


class Cluster(Resource[Spec, None], group="example.com", version="v1", namespaced=False): ...


class Child(Object, group="", version="v1"): ...


def parent(uid: str = "u1", namespace: str = "shop") -> Parent:
    return Parent(metadata=ObjectMeta(name=f"p-{uid}", namespace=namespace, uid=uid))


def child(*owners: OwnerReference, namespace: str = "shop") -> Child:
    return Child(metadata=ObjectMeta(name="c", namespace=namespace, owner_references=list(owners)))


def test_reference_has_all_that_the_garbage_collector_needs() -> None:
    """Kind, name, uid, and that the owner waits for it."""
    assert owner_reference(parent()) == OwnerReference(
        api_version="example.com/v1", kind="Parent", name="p-u1", uid="u1", controller=True, block_owner_deletion=True
    )
    assert owner_reference(parent(), controller=False).controller is False


def test_owner_without_a_uid_is_refused() -> None:
    """It was never on a server."""
    with pytest.raises(
        InvalidValueError, match=r"expected an owner with a uid, got Parent 'p' without one; create it or read"
    ):
        owner_reference(Parent(name="p"))


def test_controller_is_set_once() -> None:
    """Doing it again changes nothing; other owners stay."""
    other = owner_reference(parent("u2"), controller=False)
    owned = child(other)
    set_controller(owned, parent())
    before = list(owned.metadata.owner_references)
    set_controller(owned, parent())
    assert owned.metadata.owner_references == before
    assert [reference.uid for reference in before] == ["u2", "u1"]
    found = controller_of(owned)
    assert found is not None
    assert found.uid == "u1"
    assert is_owned_by(owned, parent())
    assert is_owned_by(owned, parent("u2"))
    assert not is_owned_by(owned, parent("u3"))


def test_setting_the_controller_again_keeps_the_order() -> None:
    """Or every apply would be a change."""
    owned = child(owner_reference(parent()), owner_reference(parent("u2"), controller=False))
    set_controller(owned, parent())
    assert [reference.uid for reference in owned.metadata.owner_references] == ["u1", "u2"]


def test_owner_becomes_controller() -> None:
    """Where it was an owner only."""
    owned = child(owner_reference(parent(), controller=False))
    set_controller(owned, parent())
    assert [reference.controller for reference in owned.metadata.owner_references] == [True]


def test_second_controller_is_refused() -> None:
    """An object has one; the error names it."""
    owned = child(owner_reference(parent("u2")))
    with pytest.raises(
        InvalidValueError, match=r"Child 'c' is controlled by Parent 'p-u2'; an object has one controller"
    ):
        set_controller(owned, parent())


def test_object_without_owners_has_no_controller() -> None:
    """And one with owners that do not control it neither."""
    assert controller_of(child()) is None
    assert controller_of(child(owner_reference(parent(), controller=False))) is None


def test_owner_in_another_namespace_is_refused() -> None:
    """The garbage collector would delete the child."""
    with pytest.raises(InvalidValueError, match="the garbage collector would delete it; put both in one namespace"):
        set_controller(child(namespace="other"), parent())
    with pytest.raises(InvalidValueError, match="in 'no namespace': the garbage collector would delete it"):
        set_controller(Cluster(name="c"), parent())


def dynamic(namespace: str = "", **metadata: Any) -> Dynamic:
    place = {"namespace": namespace} if namespace else {}
    return Dynamic({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", **place, **metadata}})


@pytest.mark.parametrize("owned", [child(namespace=""), dynamic(), Dynamic(kind="Widget", apiVersion="v1")])
def test_child_without_a_namespace_goes_to_that_of_its_owner(owned: Object | Dynamic) -> None:
    """Unset means not decided yet."""
    set_controller(owned, parent())
    assert owned.namespace == "shop"


@pytest.mark.parametrize("owned", [child(), dynamic("shop"), dynamic("shop", ownerReferences=None)])
@pytest.mark.parametrize("owner", [parent(), dynamic("shop", uid="u9")])
def test_object_without_a_class_owns_and_is_owned(owned: Any, owner: Any) -> None:
    """As those with one."""
    owned = owned.copy() if isinstance(owned, Object) else Dynamic(copy.deepcopy(dict(owned)))
    assert controller_of(owned) is None
    set_controller(owned, owner)
    set_controller(owned, owner)
    assert controller_of(owned) == owner_reference(owner)
    assert is_owned_by(owned, owner)
    assert not is_owned_by(owned, parent("u3"))
    with pytest.raises(InvalidValueError, match="an object has one controller"):
        set_controller(owned, parent("u3"))


def test_owners_of_an_object_without_a_class_are_in_its_json() -> None:
    """In the wire's names; those that were there stay."""
    other = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u0"}
    owned = dynamic("shop", ownerReferences=[other])
    set_controller(owned, parent())
    reference = {"apiVersion": "example.com/v1", "kind": "Parent", "name": "p-u1", "uid": "u1"}
    expected = [other, reference | {"controller": True, "blockOwnerDeletion": True}]
    assert owned["metadata"]["ownerReferences"] == expected


def test_owner_without_a_type_is_refused() -> None:
    """The garbage collector looks owners up by it."""
    with pytest.raises(InvalidValueError, match="expected an owner with apiVersion and kind, got 'w' without"):
        owner_reference(Dynamic(metadata={"name": "w", "uid": "u"}))


class PartialObjectMetadata(Object, group="meta.k8s.io", version="v1", has_status=False): ...


def test_owner_of_which_only_the_metadata_is_known_goes_by_its_kind() -> None:
    """Which it has from whoever asked for it; without, it is refused."""
    partial = PartialObjectMetadata(metadata=ObjectMeta(name="p", uid="u"))
    with pytest.raises(
        InvalidValueError, match=r"got the metadata alone of 'p'; read it with client.get\(MetadataOnly"
    ):
        owner_reference(partial)
    vars(partial)["_of"] = Parent.__kind__
    assert (owner_reference(partial).api_version, owner_reference(partial).kind) == ("example.com/v1", "Parent")


def test_cluster_scoped_owner_owns_anywhere() -> None:
    """It is in no namespace."""
    owner: Any = Cluster(metadata=ObjectMeta(name="c", uid="u"))
    owned = child()
    set_controller(owned, owner)
    assert is_owned_by(owned, owner)
