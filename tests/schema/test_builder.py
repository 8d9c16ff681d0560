"""Types and markers turned into schemas."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from typing_extensions import TypeAliasType

from navarch.api import (
    Atomic,
    Column,
    Dynamic,
    Embedded,
    Immutable,
    IntOrString,
    Meta,
    Model,
    OneOf,
    RawSchema,
    Resource,
    Rule,
    SchemaPatch,
    Spec,
    Status,
)
from navarch.api.codec import encode
from navarch.api.duration import Duration
from navarch.api.quantity import Quantity
from navarch.k8s.core.v1 import PodTemplateSpec
from navarch.schema import crd, schema_of
from schema.thing import Name, Own, Point, Shade, kind_with, value_schema

T = TypeVar("T")


class Pair(Model, Generic[T], tag="pair", tag_field="form"):
    left: T
    right: T


class Single(Model, Generic[T], tag="single", tag_field="form"):
    left: T


Port = TypeAliasType("Port", Annotated[int, Meta(ge=1)])
"""What `type Port = Annotated[int, Meta(ge=1)]` makes, from Python 3.12 on."""


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str | None, {"type": "string"}),
        (Name | None, {"type": "string"}),
        (int | None, {"type": "integer", "format": "int64"}),
        (Annotated[int, Meta(format="int32")] | None, {"type": "integer", "format": "int32"}),
        (Port | None, {"type": "integer", "format": "int64", "minimum": 1}),
        (list[Port] | None, {"type": "array", "items": {"type": "integer", "format": "int64", "minimum": 1}}),
        (float | None, {"type": "number"}),
        (int | float | None, {"type": "number"}),
        (bool | None, {"type": "boolean"}),
        (bytes | None, {"type": "string", "format": "byte"}),
        (dt.datetime | None, {"type": "string", "format": "date-time"}),
        (dt.date | None, {"type": "string", "format": "date"}),
        (uuid.UUID | None, {"type": "string", "format": "uuid"}),
        (Shade | None, {"type": "string", "enum": ["light", "dark"]}),
        (Literal[1, 2] | None, {"type": "integer", "enum": [1, 2]}),
        (Literal["a"] | Literal["b"] | None, {"type": "string", "enum": ["a", "b"]}),  # noqa: PYI030 - as aliases make it
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
        (list[str | None] | None, {"type": "array", "items": {"type": "string", "nullable": True}}),
        (
            dict[str, Annotated[bool, Meta(title="On")] | None] | None,
            {"type": "object", "additionalProperties": {"type": "boolean", "title": "On", "nullable": True}},
        ),
        (
            Annotated[list[str], Meta(max_length=3)] | None,
            {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        ),
        (
            Annotated[list[str], Atomic()] | None,
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        ),
        (Annotated[Any, RawSchema({"type": "string", "format": "ipv4"})], {"type": "string", "format": "ipv4"}),
        (Annotated[int, Meta(format="")] | None, {"type": "integer"}),
        (Annotated[str, Meta(default="a")] | None, {"type": "string", "default": "a"}),
        (
            Annotated[list[str] | None, Meta(default=["a"])],
            {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        ),
        (
            Annotated[dict[str, str], SchemaPatch({"minProperties": 1, "additionalProperties": {"maxLength": 3}})]
            | None,
            {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}, "minProperties": 1},
        ),
        (
            Annotated[IntOrString, SchemaPatch({"anyOf": [{"type": "integer"}, {"type": "string"}]})] | None,
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        ),
        (Annotated[int, SchemaPatch({"format": None})] | None, {"type": "integer"}),
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


def test_a_nullable_immutable_field_is_guarded_against_null() -> None:
    """Nor is the rule asked about null, whatever the default of the field."""
    nullable = Annotated[str, Immutable(), Meta(nullable=True)]
    schema = schema_of(kind_with(nullable, default="a"))["properties"]["spec"]
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


def test_members_of_a_union_may_describe_a_common_field_differently() -> None:
    """The field has what all of them say of it."""

    class Bucket(Model, tag="s3", tag_field="store"):
        place: str
        """The bucket."""

    class Folder(Model, tag="local", tag_field="store"):
        place: str
        """The folder."""

    union = value_schema(Bucket | Folder | None)
    assert union["properties"]["place"] == {"description": "The bucket.\nThe folder.", "type": "string"}


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


def test_a_kind_can_have_columns_without_an_age() -> None:
    """As CRDs of others may have them."""
    only = Column("Value", path=".spec.value", type="integer")
    columns = crd(kind_with(int, default=1, columns=(only,), age_column=False))["spec"]["versions"][0]
    assert [column["name"] for column in columns["additionalPrinterColumns"]] == ["Value"]


def test_a_default_of_the_server_is_not_sent() -> None:
    """It is a default of the schema, and of nothing else: the field is unset."""

    class Shelf(Model):
        unit: Annotated[str, Meta(default="m")] | None = None
        width: Annotated[int, Meta(default=1)]

    assert value_schema(Shelf | None) == {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "default": "m"},
            "width": {"type": "integer", "format": "int64", "default": 1},
        },
        "required": ["width"],
    }
    assert encode(Shelf(width=2)) == b'{"width":2}'


def test_a_kind_can_patch_its_own_schema() -> None:
    """The root has no field that could carry a marker."""
    made = schema_of(
        kind_with(int, default=1, schema_patch={"required": ["spec"], "properties": {"kind": None, "status": None}})
    )
    assert (made["required"], list(made["properties"])) == (["spec"], ["apiVersion", "metadata", "spec"])


def test_a_kind_can_name_its_list() -> None:
    """By default it is the kind and List."""
    assert crd(kind_with(int, default=1))["spec"]["names"]["listKind"] == "ThingList"
    assert crd(kind_with(int, default=1, list_kind="Things"))["spec"]["names"]["listKind"] == "Things"


@pytest.mark.parametrize(
    "path",
    [
        '.status.conditions[?(@.type=="Ready")].status',
        ".status.conditions[*].type",
        ".metadata.annotations.example\\.com/owner",
        ".kind",
        "..name",
        ".spec.value.labels.anything",
        ".spec.value.open.any.thing",
        ".spec.value.whole.metadata.name",
        ".spec.value.whole.spec.deep",
        ".spec.value.raw.any",
    ],
)
def test_a_column_may_show_what_the_schema_leaves_open(path: str) -> None:
    """Maps, preserved fields, metadata, and all that comes after a filter or an index."""

    class Open(Model):
        labels: dict[str, str] = {}
        open: dict[str, Any] = {}
        whole: Dynamic | None = None
        raw: Annotated[Any, RawSchema({"type": "object", "additionalProperties": True})] = None

    columns = (Column("A", path=path, type="string"),)
    made = crd(kind_with(Open | None, columns=columns))["spec"]["versions"][0]["additionalPrinterColumns"]
    assert made[0]["jsonPath"] == path


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


def test_a_generic_model_has_the_schema_of_its_arguments() -> None:
    """Alone, and as a member of a union."""
    text = {"type": "string"}
    assert value_schema(Pair[str] | None)["properties"] == {"left": text, "right": text}
    union = value_schema(Pair[str] | Single[str] | None)
    forms = {"type": "string", "enum": ["pair", "single"]}
    assert union["properties"] == {"form": forms, "left": text, "right": text}
