"""Types and markers turned into schemas, and what is refused on the way."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from typing import Annotated, Any, Literal, NewType, cast

import pytest

from navarch.api import (
    Atomic,
    Column,
    Dynamic,
    Embedded,
    Immutable,
    IntOrString,
    ListMap,
    ListSet,
    Meta,
    Model,
    Object,
    ObjectMeta,
    OneOf,
    RawSchema,
    Resource,
    Rule,
    Scale,
    Selectable,
    Spec,
    Status,
)
from navarch.api.duration import Duration
from navarch.api.model import ModelType
from navarch.api.quantity import Quantity
from navarch.api.resource import ObjectType
from navarch.errors import DefinitionError
from navarch.k8s.core.v1 import ContainerPort, PodTemplateSpec
from navarch.schema import Webhook, crd, schema_of

Name = NewType("Name", str)


class Shade(enum.Enum):
    LIGHT = "light"
    DARK = "dark"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Point(Model):
    x: int
    y: int = 0


class Node(Model):
    inner: Node | None = None


class Own:
    """A type that says itself what it looks like on the wire."""

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {"type": "string", "pattern": "^own$"}

    @classmethod
    def from_wire(cls, value: object) -> Own:
        return cls()

    def to_wire(self) -> str:
        return "own"


def kind_with(annotation: Any, *, default: Any = None, **keywords: Any) -> type[Object]:
    """A kind whose spec has one field, `value`."""
    model_type, object_type = cast(Any, ModelType), cast(Any, ObjectType)
    spec = model_type("ThingSpec", (Spec,), {"__annotations__": {"value": annotation}, "value": default})
    bases = {
        "__orig_bases__": (cast(Any, Resource)[spec, Status],),
        "__annotations__": {"spec": spec, "status": Status},
    }
    named = {"group": "things.example.com", "version": "v1"} | keywords
    return cast(type[Object], object_type("Thing", (Resource,), bases, **named))


def value_schema(annotation: Any, **keywords: Any) -> dict[str, Any]:
    """The schema of `value`."""
    schema = schema_of(kind_with(annotation, **keywords))
    found: dict[str, Any] = schema["properties"]["spec"]["properties"]["value"]
    return found


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str | None, {"type": "string"}),
        (Name | None, {"type": "string"}),
        (int | None, {"type": "integer", "format": "int64"}),
        (Annotated[int, Meta(format="int32")] | None, {"type": "integer", "format": "int32"}),
        (float | None, {"type": "number"}),
        (int | float | None, {"type": "number"}),
        (bool | None, {"type": "boolean"}),
        (bytes | None, {"type": "string", "format": "byte"}),
        (dt.datetime | None, {"type": "string", "format": "date-time"}),
        (dt.date | None, {"type": "string", "format": "date"}),
        (uuid.UUID | None, {"type": "string", "format": "uuid"}),
        (Shade | None, {"type": "string", "enum": ["light", "dark"]}),
        (Literal[1, 2] | None, {"type": "integer", "enum": [1, 2]}),
        (Literal["a", None], {"type": "string", "enum": ["a"]}),  # noqa: PYI061 - both spellings are read
        (IntOrString | None, {"x-kubernetes-int-or-string": True}),
        (int | str | None, {"x-kubernetes-int-or-string": True}),
        (list[str] | None, {"type": "array", "items": {"type": "string"}}),
        (tuple[str, ...] | None, {"type": "array", "items": {"type": "string"}}),
        (set[str] | None, {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (dict[str, bool] | None, {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (dict[Shade, bool] | None, {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (dict[str, Any] | None, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Any, {"x-kubernetes-preserve-unknown-fields": True}),
        (Own | None, {"type": "string", "pattern": "^own$"}),
        (Annotated[str, Meta(nullable=True)] | None, {"type": "string", "nullable": True}),
        (
            Annotated[list[str], Meta(max_length=3)] | None,
            {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        ),
        (
            Annotated[list[str], Atomic()] | None,
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        ),
        (Annotated[Any, RawSchema({"type": "string", "format": "ipv4"})], {"type": "string", "format": "ipv4"}),
    ],
    ids=str,
)
def test_a_type_becomes_its_schema(annotation: Any, expected: dict[str, Any]) -> None:
    """Every type that JSON can hold has one schema."""
    assert value_schema(annotation) == expected


def test_quantities_and_durations_carry_kubernetes_patterns() -> None:
    """Both are text to the server, so it is told what text."""
    quantity, duration = value_schema(Quantity | None), value_schema(Duration | None)
    assert quantity["x-kubernetes-int-or-string"] is True
    assert "[KMGTPE]i" in quantity["pattern"]
    assert (duration["type"], "ms" in duration["pattern"]) == ("string", True)


def test_a_struct_lists_what_it_requires_and_what_it_defaults_to() -> None:
    """Required is what has no default; a default is what an object gets that leaves it out."""
    point = value_schema(Point | None)
    assert point["required"] == ["x"]
    assert point["properties"]["y"]["default"] == 0


def test_the_default_of_a_model_is_written_out() -> None:
    """The server validates a default as it stands, before the defaults inside of it."""
    assert value_schema(Point, default=Point(x=1))["default"] == {"x": 1, "y": 0}


def test_defaults_are_plain_json_in_a_stable_order() -> None:
    """A tuple is a list there, and a set is written alike in every process."""
    assert value_schema(tuple[int, ...], default=(2, 1))["default"] == [2, 1]
    assert value_schema(set[str], default={"c", "a", "b"})["default"] == ["a", "b", "c"]


def test_a_spec_of_defaults_has_an_empty_default_and_a_status_has_none() -> None:
    """An object without spec gets all defaults; a new object has no status."""
    schema = schema_of(kind_with(int, default=3))
    assert schema["properties"]["spec"]["default"] == {}
    assert "default" not in schema["properties"]["status"]
    assert "required" not in schema


def test_a_spec_with_rules_has_its_default_written_out() -> None:
    """The server asks the rules about the default as it stands."""

    class RuledSpec(Spec, rules=(Rule("self.low < self.high"),)):
        low: int = 1
        high: int = 2

    class Ruled(Resource[RuledSpec, Status], group="things.example.com", version="v1"): ...

    assert schema_of(Ruled)["properties"]["spec"]["default"] == {"low": 1, "high": 2}


def test_built_in_types_can_be_fields() -> None:
    """Where Kubernetes leaves a key of a map list open, its own default is filled in."""
    template = value_schema(PodTemplateSpec | None)
    container = template["properties"]["spec"]["properties"]["containers"]["items"]
    assert container["properties"]["ports"]["items"]["properties"]["protocol"]["default"] == "TCP"


def test_whole_objects_inside_are_embedded_resources() -> None:
    """A kind, a dynamic object and a marked dict alike."""
    assert value_schema(Dynamic | None)["x-kubernetes-embedded-resource"] is True
    marked = value_schema(Annotated[dict[str, Any], Embedded()] | None)
    assert marked["x-kubernetes-preserve-unknown-fields"] is True


def test_an_optional_immutable_field_is_guarded_against_removal() -> None:
    """A rule on the field is not asked once the field is gone; the struct around it is."""
    schema = schema_of(kind_with(Annotated[str, Immutable("stays")] | None))["properties"]["spec"]
    assert schema["properties"]["value"]["x-kubernetes-validations"] == [
        {"rule": "self == oldSelf", "message": "stays"}
    ]
    assert schema["x-kubernetes-validations"][0]["rule"] == "!has(oldSelf.value) || has(self.value)"


def test_one_of_counts_the_fields_that_are_set() -> None:
    """Python names are translated, reserved words escaped."""

    class ChoiceSpec(Spec, one_of=(OneOf("host_name", "namespace"),)):
        host_name: str | None = None
        namespace: str | None = None

    class Choice(Resource[ChoiceSpec, Status], group="things.example.com", version="v1"): ...

    schema = schema_of(Choice)
    rule = schema["properties"]["spec"]["x-kubernetes-validations"][0]
    assert rule["rule"] == "[has(self.hostName), has(self.__namespace__)].filter(x, x).size() == 1"
    assert schema["required"] == ["spec"], "an empty spec breaks the rule, so it cannot be the default"


def test_columns_of_fields_know_their_path_and_type() -> None:
    """An age comes with them, since the server adds it only where there are no columns."""
    kind = kind_with(Annotated[dt.datetime, Column("When")] | None)
    columns = crd(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert columns == [
        {"name": "When", "type": "date", "jsonPath": ".spec.value"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def test_a_column_of_the_creation_time_takes_the_place_of_age() -> None:
    """Nobody gets two."""
    born = Column("Born", path=".metadata.creationTimestamp", type="date")
    columns = crd(kind_with(int, default=1, columns=(born,)))["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == ["Born"]


def test_descriptions_are_cut_for_a_field_and_for_all() -> None:
    """A field's own limit stands before the limit of the call."""

    class ToldSpec(Spec):
        short: Annotated[str, Meta(description_limit=12)] = ""
        """One two three four."""
        long: str = ""
        """One two three four."""

    class Told(Resource[ToldSpec, Status], group="things.example.com", version="v1"):
        """A kind that is told of."""

    fields = schema_of(Told, description_limit=9)["properties"]["spec"]["properties"]
    assert (fields["short"]["description"], fields["long"]["description"]) == ("One two…", "One two…")
    assert "description" not in schema_of(Told, description_limit=0)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (
            decimal.Decimal | None,
            "expected a type that JSON can hold, got Decimal; use a Model, or say what it is with RawSchema",
        ),
        (dt.timedelta | None, "expected a type that JSON can hold, got timedelta"),
        (
            Node | None,
            r"Thing\.spec\.value\.inner: expected a schema that ends, got Node inside itself; mark .* Preserve\(\)",
        ),
        (
            Point | Node | None,
            r"expected one type, got Point \| Node; use one Model with .*one_of=\(OneOf\('point', 'node'\)",
        ),
        (int | bool | None, "expected one type, got"),
        (tuple[int, str] | None, "expected items of one type"),
        (dict[int, str] | None, "expected a map with string keys"),
        (Mixed | None, "expected an enum whose values are all"),
        (Annotated[str, Meta(ge=1)] | None, "expected a bound .* on a number, got type string"),
        (Annotated[int, Meta(ge=1, gt=1)] | None, "expected one bound on each side"),
        (Annotated[int, Meta(min_length=1)] | None, "expected min_length on a string, list or map, got type integer"),
        (Annotated[int, Meta(pattern="a")] | None, "expected a pattern on a string, got type integer"),
        (Annotated[str, ListSet()] | None, "expected ListSet on a list, got type string"),
        (Annotated[str, Atomic()] | None, "expected Atomic on a list, map or struct"),
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
        (Annotated[float, Meta(multiple_of=0.5)] | None, "expected a positive whole number, got 0.5; write a Rule"),
        (Annotated[int, Meta(enum=("a",))] | None, "expected values of type integer, got 'a'"),
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
        (Annotated[Point, Rule("self.z > 1")] | None, "a CEL rule that fits the schema, got 'self.z > 1'"),
        (list[Annotated[int, Immutable()]] | None, r"Thing\.spec\.value\[\]: expected no oldSelf inside a list"),
        (Annotated[Any, RawSchema({"$ref": "#"})], "got \\$ref"),
    ],
    ids=str,
)
def test_a_schema_that_the_server_would_refuse_is_refused(annotation: Any, message: str) -> None:
    """At the place that the author of the class knows."""
    with pytest.raises(DefinitionError, match=message):
        value_schema(annotation)


def test_a_default_that_does_not_validate_is_refused() -> None:
    """The server would refuse it for the same reason."""
    with pytest.raises(
        DefinitionError, match=r"Thing\.spec\.value: expected a default that is valid, got 9: .*less than"
    ):
        value_schema(Annotated[int, Meta(le=3)], default=9)


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


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"group": "example"}, "expected a domain with at least one dot, got 'example'"),
        ({"version": "1"}, "expected a version like v1alpha1, got '1'"),
        ({"storage": False}, "expected exactly one version with storage=True, got none"),
        ({"short_names": ("thing",)}, "expected a name not used yet, got 'thing'"),
        ({"deprecated": "x" * 300}, "expected 1 to 256 printable characters"),
        ({"scale": Scale(spec_replicas=".status.x")}, r"expected a path under \.spec\."),
        ({"columns": (Column("A", path=".spec.nothing"),)}, "expected column 'A' to have a type"),
        ({"columns": (Column("A", path="spec.value", type="string"),)}, r"expected a path like \.spec\.size"),
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


def test_a_class_without_a_kind_is_refused() -> None:
    """It is no kind before it has a group and a version."""
    with pytest.raises(DefinitionError, match="expected a class with group= and version=, got Resource"):
        crd(Resource)
    with pytest.raises(DefinitionError, match="expected at least one class"):
        crd()


def test_a_webhook_needs_one_address() -> None:
    """A service or a URL."""
    with pytest.raises(DefinitionError, match="expected a service or a url, got neither"):
        crd(kind_with(int, default=1), conversion=Webhook())


def test_an_unknown_format_is_kept_with_a_warning() -> None:
    """As the server does."""
    with pytest.warns(UserWarning, match=r"Thing\.spec\.value: the API server does not know the format 'colour'"):
        assert value_schema(Annotated[str, Meta(format="colour")] | None)["format"] == "colour"


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
