"""Who owns whom."""

from typing import Any

import pytest

from navarch.api import (
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


@pytest.mark.parametrize("namespace", ["other", ""])
def test_owner_in_another_namespace_is_refused(namespace: str) -> None:
    """The garbage collector would delete the child."""
    with pytest.raises(InvalidValueError, match="the garbage collector would delete it; put both in one namespace"):
        set_controller(child(namespace=namespace), parent())


def test_cluster_scoped_owner_owns_anywhere() -> None:
    """It is in no namespace."""
    owner: Any = Cluster(metadata=ObjectMeta(name="c", uid="u"))
    owned = child()
    set_controller(owned, owner)
    assert is_owned_by(owned, owner)
