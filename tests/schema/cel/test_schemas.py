"""Structural schemas as types, and JSON as values."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.errors import DefinitionError
from navarch.schema import cel
from navarch.schema.cel.lexer import escape

RESOURCE = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date"}, "google.protobuf.Timestamp"),
        ({"type": "string", "format": "date-time"}, "google.protobuf.Timestamp"),
        ({"type": "string", "format": "duration"}, "google.protobuf.Duration"),
        ({"type": "string", "format": "byte"}, "bytes"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"type": "integer", "format": "int32"}, "int"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"type": "array", "items": {"type": "integer"}}, "list(int)"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "map(string, bool)"),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, "object"),
        ({"type": "string", "nullable": True}, "string"),
    ],
)
def test_schema_has_its_type(schema: dict[str, Any], name: str) -> None:
    """Formats change the type of a string; nullable changes nothing."""
    assert str(cel.type_of_schema(schema)) == name


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"x-kubernetes-preserve-unknown-fields": True}])
def test_schema_without_a_type_takes_no_rules(schema: dict[str, Any]) -> None:
    """The server refuses rules there; so does the generator."""
    with pytest.raises(DefinitionError, match="a rule needs a schema with a type"):
        cel.type_of_schema(schema)


def test_properties_without_a_type_are_out_of_reach() -> None:
    """What a schema does not tell of has no field, at any depth."""
    schema = {
        "type": "object",
        "properties": {
            "known": {"type": "string"},
            "any": {"x-kubernetes-preserve-unknown-fields": True},
            "anys": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
            "1st": {"type": "string"},
        },
    }
    assert set(cel.type_of_schema(schema).fields or {}) == {"known"}


def test_resource_root_shows_names_and_kind() -> None:
    """Even if the schema says nothing of metadata, two fields of it can be read."""
    fields = cel.type_of_schema(RESOURCE, resource=True).fields or {}
    assert set(fields) == {"spec", "apiVersion", "kind", "metadata"}
    assert set(fields["metadata"].fields or {}) == {"name", "generateName"}
    value = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {}}, "spec": {"size": 1}}
    rule = cel.compile(
        "self.metadata.name == 'n' && self.spec.size == 1", {"self": cel.type_of_schema(RESOURCE, resource=True)}
    )
    assert rule.evaluate({"self": cel.value_of(value, RESOURCE, resource=True)}) is True


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("name", "name"),
        ("foo-bar", "foo__dash__bar"),
        ("a.b", "a__dot__b"),
        ("c/d", "c__slash__d"),
        ("x__y", "x__underscores__y"),
        ("___", "__underscores___"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("true", "__true__"),
        ("-x", "__dash__x"),
        ("1st", None),
        ("", None),
        ("it's", None),
        ("$ref", None),
        ("naïve", None),
        ("a\n", None),
    ],
)
def test_property_names_are_escaped_as_kubernetes_does(name: str, escaped: str | None) -> None:
    """A name that cannot be spelt as an identifier cannot be reached at all."""
    assert escape(name) == escaped


@pytest.mark.parametrize(
    ("value", "schema", "converted"),
    [
        (2, {"type": "number"}, 2.0),
        ("90m", {"type": "string", "format": "duration"}, cel.CelDuration(5_400_000_000_000)),
        ("2 weeks", {"type": "string", "format": "duration"}, cel.CelDuration(1_209_600_000_000_000)),
        ("1970-01-02", {"type": "string", "format": "date"}, cel.Timestamp(86_400_000_000_000)),
        ("1970-01-01T01:00:00+01:00", {"type": "string", "format": "date-time"}, cel.Timestamp(0)),
        ("1970-01-01T00:00:00", {"type": "string", "format": "date-time"}, cel.Timestamp(0)),
        ("", {"type": "string", "format": "date-time"}, cel.Timestamp(0)),
        ("-_-_", {"type": "string", "format": "byte"}, b"\xfb\xff\xbf"),
        (None, {"type": "string", "nullable": True}, None),
        ({"a": 1}, {"type": "object", "additionalProperties": {"type": "number"}}, {"a": 1.0}),
        (
            {"foo-bar": "x", "gone": 1},
            {"type": "object", "properties": {"foo-bar": {"type": "string"}}},
            {"foo__dash__bar": "x"},
        ),
        ({"a": None}, {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}}, {}),
        ((1, 2), {"type": "array", "items": {"type": "integer"}}, [1, 2]),
    ],
)
def test_json_becomes_the_value_its_schema_says(value: Any, schema: dict[str, Any], converted: Any) -> None:
    """Formats are read, names escaped, nulls of properties left out."""
    found = cel.value_of(value, schema)
    assert found == converted
    assert isinstance(found, type(converted))


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, {"type": "string"}),
        (True, {"type": "integer"}),
        ("1", {"type": "integer"}),
        (1, {"type": "string"}),
        ("1", {"type": "number"}),
        (1, {"type": "boolean"}),
        (1.5, {"x-kubernetes-int-or-string": True}),
        ([], {"type": "object"}),
        ({}, {"type": "array", "items": {"type": "string"}}),
        ("tomorrow", {"type": "string", "format": "date"}),
        ("2024-02-30", {"type": "string", "format": "date"}),
        ("soon", {"type": "string", "format": "duration"}),
        ("now", {"type": "string", "format": "date-time"}),
        ("+/+/", {"type": "string", "format": "byte"}),
        ("aGk", {"type": "string", "format": "byte"}),
    ],
)
def test_json_that_does_not_satisfy_its_schema_is_refused(value: Any, schema: dict[str, Any]) -> None:
    """Rules never see a value of another type than they were compiled for."""
    with pytest.raises(cel.CelEvaluationError):
        cel.value_of(value, schema)


def test_nullable_items_are_null_in_rules() -> None:
    """Only null properties count as absent; items and map values that are null are there."""
    schema = {"type": "array", "items": {"type": "string", "nullable": True}}
    variables = {"self": cel.value_of(["a", None], schema)}
    self_type = {"self": cel.type_of_schema(schema)}
    assert cel.compile("self.exists(x, x == 'a')", self_type).evaluate(variables) is True
    with pytest.raises(cel.CelEvaluationError, match="no such overload"):
        cel.compile("self.all(x, x.size() > 0)", self_type).evaluate(variables)


@pytest.mark.parametrize(
    "expression",
    [
        "'abc'.indexOf(self[0])",
        "'abc'.split(self[0])",
        "isIP(self[0])",
        "isURL(self[0])",
        "self[0] + 'a'",
        "self[0] < 'a'",
        "{'a': 1}[self[0]]",
        "self[0].matches('a')",
        "self.join()",
    ],
)
def test_null_fits_no_function_of_strings(expression: str) -> None:
    """Python would take some of these for a default; CEL does not."""
    schema = {"type": "array", "items": {"type": "string", "nullable": True}}
    program = cel.compile(expression, {"self": cel.type_of_schema(schema)})
    with pytest.raises(cel.CelEvaluationError):
        program.evaluate({"self": cel.value_of([None], schema)})


def test_empty_list_gives_way_to_the_list_of_the_object() -> None:
    """What is added to nothing stays what it is, a set too."""
    schema = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    program = cel.compile("[] + self + ['a', 'b']", {"self": cel.type_of_schema(schema)})
    assert program.evaluate({"self": cel.value_of(["a"], schema)}) == ["a", "b"]


def test_hidden_fields_count_when_objects_are_compared() -> None:
    """Preserved fields cannot be read, but an object that differs in them is another object."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "integer"}}}
    rule = cel.compile("self == oldSelf", {"self": cel.type_of_schema(schema), "oldSelf": cel.type_of_schema(schema)})

    def same(new: object, old: object) -> object:
        return rule.evaluate({"self": cel.value_of(new, schema), "oldSelf": cel.value_of(old, schema)})

    assert same({"a": 1, "b": [1]}, {"a": 1, "b": [1]}) is True
    assert same({"a": 1, "b": [1]}, {"a": 1, "b": [2]}) is False
    assert same({"a": 1, "b": [1]}, {"a": 1}) is False


def test_merged_keyed_list_keeps_positions() -> None:
    """`+` overwrites what has the same keys, in place, and appends the rest."""
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": item,
    }
    rule = cel.compile(
        "(self + oldSelf).map(i, i.v)", {name: cel.type_of_schema(schema) for name in ("self", "oldSelf")}
    )
    new = cel.value_of([{"k": "a", "v": 1}, {"k": "b", "v": 2}], schema)
    old = cel.value_of([{"k": "c", "v": 3}, {"k": "a", "v": 4}], schema)
    assert rule.evaluate({"self": new, "oldSelf": old}) == [4, 2, 3]
