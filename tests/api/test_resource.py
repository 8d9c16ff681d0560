"""Classes that declare a kind."""

import types
from typing import Any

import pytest

from navarch.api import Kind, Model, Object, ObjectMeta, Resource, Spec, Status, decode, encode
from navarch.errors import DecodeError, DefinitionError


class MemcachedSpec(Spec):
    size: int = 1


class MemcachedStatus(Status):
    nodes: list[str] = []


class Memcached(
    Resource[MemcachedSpec, MemcachedStatus], group="cache.example.com", version="v1alpha1", short_names=("mc",)
):
    """A set of memcached pods."""


class NeedySpec(Spec):
    image: str


class Needy(Resource[NeedySpec, None], group="example.com", version="v1", namespaced=False): ...


class Settings(Object, group="", version="v1", plural="settings", has_status=False):
    data: dict[str, str] | None = None
    immutable: bool | None = None


def test_class_knows_its_kind() -> None:
    """Group, version, plural and scope, as the server has them."""
    assert Memcached.__kind__ == Kind("cache.example.com", "v1alpha1", "Memcached", plural="memcacheds")
    assert Needy.__kind__ == Kind("example.com", "v1", "Needy", plural="needies", namespaced=False, has_status=False)
    assert Memcached.__declaration__.short_names == ("mc",)
    assert Memcached.__declaration__.singular == "memcached"


def test_name_and_labels_go_into_the_metadata() -> None:
    """As arguments and as attributes; metadata that is given is not changed."""
    metadata = ObjectMeta(uid="u", annotations={"a": "b"})
    memcached = Memcached(metadata=metadata, name="cache", namespace="shop", labels={"x": "y"})
    assert (memcached.name, memcached.namespace, memcached.labels) == ("cache", "shop", {"x": "y"})
    assert memcached.metadata.uid == "u"
    assert metadata.name == ""
    memcached.name = "other"
    memcached.annotations = {"c": "d"}
    assert (memcached.metadata.name, memcached.metadata.annotations) == ("other", {"c": "d"})


def test_new_object_has_an_empty_spec_and_status() -> None:
    """Where everything in them has a default."""
    memcached = Memcached(name="cache")
    assert memcached.spec == MemcachedSpec()
    assert memcached.status == MemcachedStatus()
    memcached.status.nodes.append("a")
    assert Memcached(name="cache").status.nodes == []


def test_spec_with_required_fields_must_be_given() -> None:
    """The constructor says so."""
    with pytest.raises(TypeError, match="spec"):
        Needy(name="a")
    assert Needy(name="a", spec=NeedySpec(image="i")).spec.image == "i"


def test_type_is_always_sent() -> None:
    """As the first of what is sent, as kubectl prints it."""
    assert encode(Memcached(name="a")).startswith(b'{"apiVersion":"cache.example.com/v1alpha1","kind":"Memcached"')


def test_kind_with_fields_of_its_own() -> None:
    """Like ConfigMap: no spec, no status, unset fields not sent."""
    settings = Settings(name="a", data={"k": "v"})
    assert decode(dict, encode(settings)) == {
        "apiVersion": "v1",
        "kind": "Settings",
        "metadata": {"name": "a"},
        "data": {"k": "v"},
    }
    assert not Settings.__kind__.has_status


@pytest.mark.parametrize(
    "wire",
    [
        b'{"apiVersion":"cache.example.com/v1alpha1","kind":"Other","metadata":{"name":"a"}}',
        b'{"apiVersion":"cache.example.com/v1","kind":"Memcached","metadata":{"name":"a"}}',
    ],
)
def test_object_of_another_kind_is_refused(wire: bytes) -> None:
    """By its name and by its version; the error names the object."""
    with pytest.raises(DecodeError, match="expected Memcached a"):
        Memcached.from_json(wire)


def test_item_of_a_list_has_no_type_and_gets_it() -> None:
    """The server leaves it out there."""
    found = Memcached.from_json(b'{"metadata":{"name":"a"},"spec":{"size":3}}')
    assert (found.api_version, found.kind, found.spec.size) == ("cache.example.com/v1alpha1", "Memcached", 3)


PLURALS = [("Memcached", "memcacheds"), ("Policy", "policies"), ("Gateway", "gateways"), ("Ingress", "ingresses"),
           ("Box", "boxes"), ("Quiz", "quizes"), ("Batch", "batches"), ("Mesh", "meshes"), ("Y", "ies")]  # fmt: skip


@pytest.mark.parametrize(("kind", "plural"), PLURALS)
def test_plural_follows_the_rules_of_english(kind: str, plural: str) -> None:
    """Those that kubebuilder follows too; what they get wrong is given with plural=."""
    made: Any = types.new_class(kind, (Object,), {"group": "example.com", "version": "v1"})
    assert made.__kind__.plural == plural


@pytest.mark.parametrize(
    "keywords",
    [
        {"group": "example.com"},
        {"group": ""},
        {"short_names": ("a",)},
        {"kind": "Other"},
        {"plural": "others"},
        {"namespaced": False},
        {"has_status": False},
    ],
)
def test_kind_without_a_version_is_refused(keywords: dict[str, Any]) -> None:
    """Whatever else it says: it would silently be no kind at all."""
    with pytest.raises(DefinitionError, match=rf"class Wrong: expected version= beside {next(iter(keywords))}="):
        types.new_class("Wrong", (Object,), keywords)


def test_unknown_keyword_is_refused_with_those_there_are() -> None:
    """A typo must not be swallowed."""
    with pytest.raises(
        DefinitionError, match=r"class Wrong: unknown keyword short_name; expected one of .*short_names"
    ):

        class Wrong(Resource[MemcachedSpec, None], group="example.com", version="v1", short_name=("x",)): ...


def test_status_without_defaults_is_refused() -> None:
    """A new object has none yet; the error names the field and the remedy."""

    class Bad(Status):
        nodes: list[str]

    with pytest.raises(
        DefinitionError, match=r"every field of Bad needs a default; got none for nodes.*nodes: \.\.\. \| None = None"
    ):

        class Wrong(Resource[MemcachedSpec, Bad], group="example.com", version="v1"): ...


def test_rules_of_a_kind_must_be_a_tuple() -> None:
    """As with every model."""
    with pytest.raises(DefinitionError, match=r"write rules=\(Rule"):

        class Wrong(Resource[MemcachedSpec, None], group="example.com", version="v1", rules="x"): ...


def test_spec_may_name_classes_that_come_later() -> None:
    """Annotations are looked at when they are needed, not when the class is made."""

    class LaterSpec(Spec):
        part: "Later | None" = None

    class LaterKind(Resource[LaterSpec, None], group="example.com", version="v1"): ...

    assert LaterKind(name="a").spec.part is None


class Later(Model):
    name: str


def test_repr_shows_what_was_set() -> None:
    """And not what was read, byte by byte."""
    text = repr(Memcached.from_json(b'{"metadata":{"name":"a"},"unknown":"bulk"}'))
    assert "name='a'" in text
    assert "bulk" not in text
