"""Classes that no API server would take, or that cannot be meant: each with the place and the remedy."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Annotated, Any, cast

import msgspec
import pytest

from navarch.api import (
    Atomic,
    Column,
    Embedded,
    Immutable,
    ListMap,
    ListSet,
    Meta,
    Model,
    Object,
    ObjectMeta,
    OneOf,
    Preserve,
    Quantity,
    RawSchema,
    Resource,
    Rule,
    Scale,
    SchemaPatch,
    Selectable,
    Spec,
    Status,
)
from navarch.errors import DefinitionError
from navarch.k8s.core.v1 import ContainerPort, Pod
from navarch.k8s.networking.v1 import Ingress
from navarch.schema import Webhook, crd, schema_of
from schema.kinds import Plain
from schema.thing import Mixed, Node, Point, kind_with, value_schema


class Row(msgspec.Struct, array_like=True):
    value: int = 1


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (
            complex | None,
            "expected a type that JSON can hold, got complex; use a Model, or say what it is with RawSchema",
        ),
        (decimal.Decimal | None, "expected a type that JSON can hold, got Decimal; use Quantity, or str"),
        (dt.timedelta | None, "expected a type that JSON can hold, got timedelta; use Duration"),
        (str | list[str] | None, r"expected one type, got str \| list\[str\]; use IntOrString"),
        (
            Node | None,
            r"Thing\.spec\.value\.inner: expected a schema that ends, got Node inside itself; mark .* Preserve\(\)",
        ),
        (
            Point | Node | None,
            r"expected one type, got Point \| Node; use one Model with .*one_of=\(OneOf\('point', 'node'\)",
        ),
        (int | bool | None, "expected one type, got"),
        (tuple[int, str] | None, r"expected items of one type, got tuple\[int, str\]"),
        (dict[int, str] | None, r"expected a map with string keys, got dict\[int, str\]"),
        (Mixed | None, "expected an enum whose values are all"),
        (Annotated[str, Meta(ge=1)] | None, "expected a bound .* on a number, got type string"),
        (Annotated[Quantity, Meta(le=1)] | None, "expected a rule as the bound of a quantity, got maximum; write Rule"),
        (
            Annotated[int, Immutable] | None,
            r"expected a marker, got the class Immutable itself; write Immutable\(\.\.\.\)",
        ),
        (Annotated[int, msgspec.Meta(ge=1)] | None, "expected navarch's Meta, got msgspec's; import it from navarch"),
        (Annotated[int, OneOf("a", "b")] | None, "expected a marker of a field, got OneOf; give it to the class"),
        (Annotated[int, Preserve()] | None, "expected Preserve on a struct, got type integer; remove it"),
        (Annotated[int, Meta(ge=1, gt=1)] | None, "expected one bound on each side"),
        (Annotated[float, Meta(le=float("inf"))] | None, "expected a bound that is a number, got inf; leave it out"),
        (Annotated[float, Meta(multiple_of=float("nan"))] | None, "expected a bound that is a number, got nan"),
        (Annotated[int, Meta(ge=cast(int, "5"))] | None, "expected a bound that is a number, got '5'"),
        (Annotated[str, Meta(enum=cast(Any, "ab"))] | None, r"expected enum as a tuple, got 'ab'; write \('ab',\)"),
        (Row | None, "expected a struct that is an object, got Row, an array; remove array_like=True"),
        (Annotated[int, Meta(min_length=1)] | None, "expected min_length on a string, list or map, got type integer"),
        (Annotated[int, Meta(pattern="a")] | None, "expected a pattern on a string, got type integer"),
        (Annotated[str, ListSet()] | None, "expected ListSet on a list, got type string"),
        (Annotated[str, Atomic()] | None, "expected Atomic on a list, map or struct"),
        (
            Annotated[bytes, Rule("self.size() < 9")] | None,
            "expected rules on values that they can read, got bytes; use",
        ),
        (
            Annotated[dict[str, bytes], Immutable()] | None,
            "expected rules on values that they can read, got bytes; use",
        ),
        (Annotated[str, Embedded()] | None, "expected Embedded on an object, got type string"),
        (
            list[Annotated[str, Column("A")]] | None,
            r"Thing\.spec\.value\[\]: expected Column on a field with one place",
        ),
        (list[Annotated[str, Selectable()]] | None, "expected Selectable on a field with one place"),
    ],
    ids=str,
)
def test_a_type_that_no_schema_can_describe_is_refused(annotation: Any, message: str) -> None:
    """With the place and the remedy."""
    with pytest.raises(DefinitionError, match=message):
        value_schema(annotation)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Annotated[int, Meta(ge=3, le=2)] | None, r"Thing\.spec\.value: expected minimum up to maximum 2, got 3"),
        (Annotated[int, Meta(ge=0.5)] | None, "expected a whole number on an integer, got 0.5"),
        (
            Annotated[int, Meta(le=2**63 - 1)] | None,
            "expected a maximum that the server can compare with, got 9223372036",
        ),
        (
            Annotated[int, Meta(ge=-(2**31) - 1, format="int32")] | None,
            "expected a minimum that the server can compare",
        ),
        (Annotated[float, Meta(lt=1e19)] | None, r"expected a maximum that the server can compare with, got 1000000"),
        (Annotated[float, Meta(multiple_of=0.5)] | None, "expected a positive whole number, got 0.5; write a Rule"),
        (Annotated[int, Meta(enum=("a",))] | None, "expected values of type integer, got 'a'"),
        (Annotated[str, Meta(enum=())] | None, "expected values to choose from, got none"),
        (Annotated[str, Meta(max_length=-1)] | None, "expected maxLength of 0 or more, got -1"),
        (
            Annotated[str, Meta(description="x" * 1_600_000)] | None,
            r"Thing \(spec\): expected a CRD of at most 1,572,864 bytes, .* got 1,60\d,\d{3}; shorten its descriptions",
        ),
        (Annotated[str, Meta(pattern="(?=a)")] | None, "expected a regular expression in RE2's syntax"),
        (
            Annotated[list[Point], ListMap("z")] | None,
            "keys that are fields of the items, got 'z'; use wire names: x, y",
        ),
        (
            Annotated[list[ContainerPort], ListMap("container_port")] | None,
            "keys that are fields of the items, got 'container_port'; use wire names: containerPort",
        ),
        (Annotated[list[Point], ListSet()] | None, "expected scalars in a set, got objects; use ListMap"),
        (Annotated[int, Rule("self.size > 1")] | None, "a CEL rule that fits the schema, got 'self.size > 1'"),
        (
            Annotated[int, Rule("self > 1", message="")] | None,
            r"Thing\.spec\.value: expected the message of the rule 'self > 1' to be one line of text, got ''; write one",
        ),
        (
            Annotated[int, Rule("self > 1", message_expression=" ")] | None,
            "expected the message_expression of the rule 'self > 1' to be an expression, got nothing",
        ),
        (Annotated[int, Rule("")] | None, "expected a rule with an expression, got nothing"),
        (Annotated[Point, Rule("self.z > 1")] | None, "a CEL rule that fits the schema, got 'self.z > 1'"),
        (list[Annotated[int, Immutable()]] | None, r"Thing\.spec\.value\[\]: expected no oldSelf inside a list"),
        (Annotated[Any, RawSchema({"$ref": "#"})], "got \\$ref"),
        (
            Annotated[Any, RawSchema({"type": "string", "maxLength": "9"})],
            r"Thing\.spec\.value: RawSchema, at maxLength: expected an integer, got '9'",
        ),
        (
            Annotated[str, SchemaPatch({"maxLength": "9"})] | None,
            r"Thing\.spec\.value: SchemaPatch, at maxLength: expected an integer, got '9'",
        ),
        (Annotated[str, SchemaPatch({"type": None})] | None, r"Thing\.spec\.value: expected a type"),
        (Annotated[str, Meta(max_length=1, default="ab")] | None, r"expected a default that is valid, got 'ab'"),
    ],
    ids=str,
)
def test_a_schema_that_the_server_would_refuse_is_refused(annotation: Any, message: str) -> None:
    """At the place that the author of the class knows."""
    with pytest.raises(DefinitionError, match=message):
        value_schema(annotation)


def test_a_default_that_does_not_validate_is_refused() -> None:
    """The server would refuse it for the same reason."""
    with pytest.raises(DefinitionError) as caught:
        value_schema(Annotated[int, Meta(le=3)], default=9)
    assert str(caught.value) == (
        "Thing.spec.value: expected a default that is valid, got 9: Invalid value: 9: should be less than or equal to 3; "
        "change it, or the limits"
    )
    with pytest.raises(DefinitionError, match=r"got \[9\]: Invalid value: 9: \[0\] in body .* \(at \[0\]\)"):
        value_schema(list[Annotated[int, Meta(le=3)]], default=[9])


@pytest.mark.parametrize("default", [float("inf"), float("nan")])
def test_a_default_that_json_does_not_know_is_refused(default: float) -> None:
    """It would be null in the CRD, which stands for no default at all."""
    with pytest.raises(
        DefinitionError, match=rf"Thing\.spec\.value: expected a default that JSON can hold, got {default}"
    ):
        value_schema(float, default=default)


def test_every_fault_is_told_at_once() -> None:
    """Nobody corrects one to learn of the next."""

    class ManySpec(Spec):
        first: Annotated[int, Meta(le=3)] = 9
        second_one: Annotated[str, Meta(pattern="(")] = ""

    class Many(Resource[ManySpec, Status], group="things.example.com", version="v1", short_names=("Mn",)): ...

    with pytest.raises(DefinitionError) as caught:
        crd(Many)
    assert "Many.spec.second_one: expected a regular expression" in str(caught.value)
    assert "got 'Mn'; use 'mn'" in str(caught.value)


class Faulty(Model, one_of=(OneOf("bound", "bond"),)):
    bound: Annotated[str, Meta(ge=1)] | None = None
    held: Node | None = None


def test_every_field_that_no_schema_can_describe_is_told_at_once() -> None:
    """However deep it is, beside the groups of its class that name no field, in every version."""

    class ManySpec(Spec):
        first: complex | None = None
        inner: Faulty | None = None
        again: Node | None = None
        listed: Annotated[str, ListMap("name")] = ""
        raw: Annotated[Any, RawSchema({"type": 1, "pattern": 2})] = None

    class Many(Resource[ManySpec, Status], group="things.example.com", version="v1"): ...

    with pytest.raises(DefinitionError) as caught:
        crd(Many, kind_with(complex | None, kind="Many", version="v2", storage=False))
    assert [line.partition(", got")[0] for line in str(caught.value).splitlines()] == [
        "Many.spec.first: expected a type that JSON can hold",
        "Many.spec.inner.bound: expected a bound (ge, gt, le, lt) on a number",
        "Many.spec.inner.held.inner: expected a schema that ends",
        "Many.spec.inner: expected one_of to name fields of Faulty",
        "Many.spec.again.inner: expected a schema that ends",
        "Many.spec.listed: expected ListMap on a list",
        "Many.spec.raw: RawSchema, at type: expected a text",
        "Many.spec.raw: RawSchema, at pattern: expected a text",
        "Thing.spec.value: expected a type that JSON can hold",
    ]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"group": "example"}, "expected a domain with at least one dot, got 'example'"),
        ({"version": "1"}, "expected a version like v1alpha1, got '1'"),
        ({"storage": False}, "expected exactly one version with storage=True, got none"),
        ({"labels": {"a b": "c"}}, r"Thing \(metadata\.labels\): expected a label key .* got 'a b'"),
        ({"labels": {"a": "b c"}}, r"metadata\.labels\[a\]\): expected a label value .* got 'b c'"),
        ({"annotations": {"a b": "c"}}, r"metadata\.annotations\): expected a label key .* got 'a b'"),
        ({"short_names": ("things",)}, "expected a name not used yet, got 'things'"),
        ({"deprecated": "x" * 300}, "expected 1 to 256 printable characters"),
        ({"scale": Scale(spec_replicas=".status.x")}, r"expected a path under \.spec\."),
        ({"scale": Scale()}, r"expected spec_replicas of Scale to be .* got '\.spec\.replicas' \(.* fields value, got"),
        (
            {"scale": Scale(spec_replicas=".spec.value", status_replicas=".status.n")},
            r"expected status_replicas of Scale to be the path of a field, got '\.status\.n' .*; add the field, or",
        ),
        ({"scale": Scale(selector=".status.selektor")}, r"expected selector of Scale .* got '\.status\.selektor'"),
        ({"columns": (Column("A", path=".spec.nothing"),)}, "expected column 'A' to show a field of the schema"),
        (
            {"columns": (Column("A", path=".spec.valu", type="integer"),)},
            r"expected column 'A' to show .* got '\.spec\.valu' \(expected one of the fields value, got 'valu'\)",
        ),
        (
            {"columns": (Column("A", path=".spec.value.deep", type="string"),)},
            "expected a struct or map to find 'deep' in, got type integer",
        ),
        (
            {"columns": (Column("A", path=".spec.valu[*].name", type="string"),)},
            "expected one of the fields value, got 'valu'",
        ),
        (
            {"columns": (Column("A", path=".status.conditions[0].type"),)},
            "expected column 'A' to have a type of .*, got None",
        ),
        (
            {"columns": (Column("A", path="spec.value", type="string"),)},
            r'A.* to have a path .* got \'spec.value\'; .*: "\.spec\.value"',
        ),
        ({"columns": (Column("A"),)}, r"expected column 'A' to have a path like \.spec\.size, got None; write path="),
    ],
)
def test_a_kind_that_cannot_be_served_is_refused(keywords: dict[str, Any], message: str) -> None:
    """Names, versions, columns and subresources alike."""
    with pytest.raises(DefinitionError, match=message):
        crd(kind_with(int, default=1, **keywords))


def test_versions_of_one_kind_agree_on_what_it_is() -> None:
    """A manifest has one group, one kind and one scope."""
    first = kind_with(int, default=1)
    second = kind_with(int, default=1, version="v2", namespaced=False, storage=False)
    with pytest.raises(DefinitionError, match="expected every version to have namespaced=True"):
        crd(first, second)
    with pytest.raises(DefinitionError, match="expected exactly one version with storage=True, got v1, v2"):
        crd(first, kind_with(int, default=1, version="v2"))


@pytest.mark.parametrize(
    "keywords",
    [
        {"short_names": ("tg",)},
        {"categories": ("all",)},
        {"singular": "thingy"},
        {"labels": {"a": "b"}},
        {"annotations": {"a": "b"}},
    ],
    ids=str,
)
def test_what_a_manifest_says_once_is_said_by_the_stored_version(keywords: dict[str, Any]) -> None:
    """Another version may leave it out or repeat it; what it says differently would be lost."""
    ((name, said),) = keywords.items()
    plain, saying = kind_with(int, default=1), kind_with(int, default=1, **keywords)
    old = {"version": "v0", "storage": False}
    crd(kind_with(int, default=1, **old), saying)
    crd(kind_with(int, default=1, **old, **keywords), saying)
    with pytest.raises(DefinitionError) as caught:
        crd(kind_with(int, default=1, **old, **keywords), plain)
    assert f"expected every version to have {name}=" in str(caught.value)
    assert f"got {said!r} on Thing; say it on Thing alone, which is stored" in str(caught.value)


def test_a_class_without_a_kind_is_refused() -> None:
    """It is no kind before it has a group and a version."""
    with pytest.raises(DefinitionError, match="expected a class with group= and version=, got Resource"):
        crd(Resource)
    with pytest.raises(DefinitionError, match="expected at least one class"):
        crd()


def test_an_object_in_the_place_of_its_class_is_refused() -> None:
    """It says which class to give."""
    mistaken: Any = kind_with(int, default=1)(name="one")
    with pytest.raises(
        DefinitionError, match=r"expected a class, got an object of Thing; give the class, not an object: crd\(Thing\)"
    ):
        crd(mistaken)


@pytest.mark.parametrize("kind", [Pod, Ingress])
def test_a_built_in_kind_needs_no_crd(kind: type[Object]) -> None:
    """Whatever its group: the server has its schema."""
    with pytest.raises(DefinitionError, match=f"got {kind.__name__}, which is built in: its kind needs no CRD"):
        crd(kind)


def test_a_group_of_fields_cannot_have_bytes() -> None:
    """The server fails a rule that asks whether they are set, if they have + or / in base64."""

    class KeySpec(Spec, one_of=(OneOf("name", "key"),)):
        name: str | None = None
        key: bytes | None = None

    class Key(Resource[KeySpec, Status], group="things.example.com", version="v1"): ...

    with pytest.raises(
        DefinitionError, match=r"Key\.spec\.key: expected a field of one_of that rules can read, got bytes"
    ):
        crd(Key)


@pytest.mark.parametrize(
    ("versions", "conversion", "message"),
    [
        ([Plain], "Webhook", r"expected conversion= as a Webhook\(...\), got 'Webhook'"),
        ([Plain], Webhook(url="https://a", ca_bundle=cast(bytes, "PEM")), "ca_bundle of Webhook as bytes, got text"),
        ([[Plain]], None, r"write crd\(\*versions\)"),
    ],
)
def test_argument_of_another_type_is_refused(versions: Any, conversion: Any, message: str) -> None:
    """With what it should be, and not somewhere inside."""
    with pytest.raises(DefinitionError, match=message):
        crd(*versions, conversion=conversion)


def test_a_webhook_needs_one_address() -> None:
    """A service or a URL."""
    with pytest.raises(DefinitionError, match="expected a service or a url, got neither"):
        crd(kind_with(int, default=1), conversion=Webhook())


def test_an_unknown_format_is_kept_with_a_warning() -> None:
    """As the server does."""
    with pytest.warns(UserWarning, match=r"Thing\.spec\.value: the API server does not know the format 'colour'"):
        assert value_schema(Annotated[str, Meta(format="colour")] | None)["format"] == "colour"


def test_a_field_has_one_default() -> None:
    """That of the class is sent, that in Meta is the server's: both at once would contradict each other."""
    message = r"Thing\.spec\.value: expected one default, got 'b' of the class and one in Meta; remove one of them"
    with pytest.raises(DefinitionError, match=message):
        crd(kind_with(Annotated[str, Meta(default="a")], default="b"))


def test_metadata_can_be_constrained_in_its_names_only() -> None:
    """By a schema written by hand."""

    class Named(Object, group="things.example.com", version="v1", has_status=False):
        metadata: Annotated[
            ObjectMeta, RawSchema({"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}})
        ]

    assert schema_of(Named)["properties"]["metadata"]["properties"]["name"]["maxLength"] == 9

    class Labelled(Object, group="things.example.com", version="v1", has_status=False):
        metadata: Annotated[ObjectMeta, RawSchema({"type": "object", "properties": {"labels": {"type": "object"}}})]

    with pytest.raises(DefinitionError, match="expected metadata to constrain only name and generateName, got labels"):
        crd(Labelled)
