"""Classes that declare a kind."""

import gc
import types
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from navarch.api import Column, Kind, Model, Object, ObjectMeta, Resource, Scale, Spec, Status, decode, encode
from navarch.api.declaration import Declaration
from navarch.errors import DecodeError, DefinitionError, InvalidValueError

S = TypeVar("S")


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


def test_name_is_a_keyword() -> None:
    """The error shows how it is written."""
    with pytest.raises(
        TypeError, match=r"Memcached\(\) takes keywords alone, got 1 positional; write Memcached\(name="
    ):
        Memcached("cache")  # type: ignore[call-arg]


def test_name_that_contradicts_the_metadata_is_refused() -> None:
    """Which one was meant cannot be told; saying the same twice is no harm."""
    with pytest.raises(
        InvalidValueError, match=r"Memcached: expected one name, got name='a' and metadata.name='b'; give"
    ):
        Memcached(name="a", metadata=ObjectMeta(name="b"))
    with pytest.raises(InvalidValueError, match="expected one labels"):
        Memcached(labels={}, metadata=ObjectMeta(labels={"a": "b"}))
    assert Memcached(name="a", metadata=ObjectMeta(name="a")).name == "a"


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


@pytest.mark.parametrize(
    ("keyword", "remedy"),
    [
        ("shortnames", "did you mean short_names="),
        ("versions", "did you mean version="),
        ("name_spaced", "did you mean namespaced="),
        ("scope", "for a cluster-scoped kind write namespaced=False"),
    ],
)
def test_unknown_keyword_is_refused_with_the_one_that_was_meant(keyword: str, remedy: str) -> None:
    """Among all that there are, with or without a version."""
    with pytest.raises(DefinitionError, match=rf"unknown keyword {keyword};.* group.*one_of.*version.*; {remedy}"):
        types.new_class("Wrong", (Object,), {"group": "example.com", "version": "v1", keyword: "x"})
    with pytest.raises(DefinitionError, match=remedy):
        types.new_class("Wrong", (Object,), {keyword: "x"})


@pytest.mark.parametrize(
    ("keyword", "value", "remedy"),
    [
        ("short_names", "pg", r"short_names= to be a tuple of str, got 'pg'; write short_names=\('pg',\)"),
        ("short_names", ["pg"], r"write short_names=\(str"),
        ("categories", "all", r"write categories=\('all',\)"),
        ("columns", Column("Size"), r"write columns=\(Column"),
    ],
)
def test_keyword_that_is_no_tuple_is_refused(keyword: str, value: Any, remedy: str) -> None:
    """The forgotten comma: a text would go letter by letter."""
    with pytest.raises(DefinitionError, match=remedy):
        types.new_class("Wrong", (Object,), {"group": "example.com", "version": "v1", keyword: value})


@pytest.mark.parametrize(
    ("keyword", "value", "expected"),
    [
        ("namespaced", "false", "bool"),
        ("served", 0, "bool"),
        ("deprecated", 1, "bool or str"),
        ("scale", ".spec.size", "Scale or None"),
        ("labels", ("a", "b"), "dict or None"),
        ("plural", 5, "str"),
    ],
)
def test_keyword_of_another_type_is_refused(keyword: str, value: Any, expected: str) -> None:
    """A text that says false would be true."""
    with pytest.raises(DefinitionError, match=rf"class Wrong: expected {keyword}= to be {expected}, got "):
        types.new_class("Wrong", (Object,), {"group": "example.com", "version": "v1", keyword: value})


@pytest.mark.parametrize("group", [None, ""])
def test_custom_kind_without_a_group_is_refused(group: str | None) -> None:
    """The core group is Kubernetes' own."""
    with pytest.raises(DefinitionError, match=r'class Wrong: expected group= beside version=.*add group="example.com"'):

        class Wrong(Resource[MemcachedSpec, None], version="v1", group=group): ...


class MemcachedV1(Memcached, version="v1", storage=False): ...


def test_second_version_inherits_the_kind() -> None:
    """It says anew only what differs; the wire has its own version."""
    assert MemcachedV1.__kind__ == Kind("cache.example.com", "v1", "Memcached", plural="memcacheds")
    assert MemcachedV1.__declaration__ == replace(Memcached.__declaration__, storage=False)
    made = MemcachedV1(name="a", spec=MemcachedSpec(size=3))
    assert encode(made).startswith(b'{"apiVersion":"cache.example.com/v1","kind":"Memcached"')
    assert MemcachedV1.from_json(encode(made)) == made
    with pytest.raises(DecodeError):
        MemcachedV1.from_json(encode(Memcached(name="a")))


def test_second_version_says_anew_what_differs() -> None:
    """Scope, names and columns; a status only where its base has one."""

    class Base(
        Resource[MemcachedSpec, None],
        group="example.com",
        version="v1",
        kind="Thing",
        plural="thingies",
        namespaced=False,
        scale=Scale(),
        categories=("all",),
        deprecated=True,
    ): ...

    class Next(Base, version="v2", categories=("none",), scale=None): ...

    expected = Kind("example.com", "v2", "Thing", plural="thingies", namespaced=False, has_status=False)
    assert Next.__kind__ == expected
    assert Next.__declaration__ == Declaration(singular="thing", categories=("none",))


def test_second_version_may_have_another_spec_and_status() -> None:
    """Also one that has to be given where the first had not."""

    class Second(Memcached, Resource[NeedySpec, None], version="v2"): ...

    Other: Any = Second  # noqa: N806 - to a type checker it has the spec of its base
    assert Other.__kind__ == Kind("cache.example.com", "v2", "Memcached", plural="memcacheds", has_status=False)
    with pytest.raises(TypeError, match="spec"):
        Other(name="a")
    assert b'"spec":{"image":"i"}' in encode(Other(name="a", spec=NeedySpec(image="i")))


@pytest.mark.parametrize("keywords", [{"kind": "Other"}, {"group": "other.example.com"}])
def test_another_kind_inherits_no_names(keywords: dict[str, Any]) -> None:
    """Only another version is the same kind."""
    made: Any = types.new_class("Other", (Memcached,), {"group": "cache.example.com", "version": "v1"} | keywords)
    assert (made.__kind__.kind, made.__kind__.plural) == ("Other", "others")
    assert made.__declaration__ == Declaration(singular="other")


def test_resource_of_a_spec_alone_is_refused() -> None:
    """The status is said, even where there is none; a generic class of one's own has the parameters it has."""
    with pytest.raises(DefinitionError, match=r"got Resource\[MemcachedSpec\];.*write Resource\[MemcachedSpec, None\]"):
        Resource[MemcachedSpec]  # type: ignore[misc]

    class Alike(Resource[S, MemcachedStatus]): ...

    assert Alike[NeedySpec] is not None


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


def test_objects_are_no_work_for_the_garbage_collector() -> None:
    """Ten thousand of them must not make it slow; they are trees, and hold no cycles."""
    found = Memcached.from_json(b'{"metadata":{"name":"a"},"status":{"nodes":["b"]}}')
    assert not any(map(gc.is_tracked, (found, found.metadata, found.spec, found.status)))


def test_cycle_by_way_of_a_foreign_attribute_is_seen_by_the_garbage_collector() -> None:
    """What somebody hangs on an object can be anything, the object itself as well."""
    found = Memcached.from_json(b'{"metadata":{"name":"a"}}')
    found.friend = found  # type: ignore[attr-defined]
    assert gc.is_tracked(found)
