"""Values validated, defaulted and pruned by schemas of any CRD."""

from __future__ import annotations

import copy
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.api import Immutable, ListMap, Meta, Resource, Rule, Spec, Status
from navarch.errors import ValidationError
from navarch.k8s.core.v1 import ContainerPort
from navarch.schema import Schema, check, default, prune, validate
from navarch.schema.values.formats import format_check, is_known_format
from schema import kinds
from schema.definitions import with_value
from schema.shapes import SHAPES
from schema.strategies import FORMATS, values


def schema_for(value: dict[str, Any]) -> dict[str, Any]:
    """The schema of a kind with `spec.value`."""
    schema: dict[str, Any] = with_value(value)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def faults(schema: dict[str, Any], value: Any, old: Any = None) -> list[str]:
    """The faults of `spec.value`, as text."""
    before = None if old is None else {"spec": {"value": old}}
    return [str(cause) for cause in validate({"spec": {"value": value}}, schema_for(schema), before)]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, "a", 'Invalid value: "string": spec.value in body must be of type integer: "string"'),
        ({"type": "string"}, None, 'Invalid value: "null": spec.value in body must be of type string: "null"'),
        ({"type": "string", "maxLength": 1}, "ab", "Too long: may not be more than 1 byte"),
        (
            {"type": "string", "minLength": 3},
            "ab",
            'Invalid value: "ab": spec.value in body should be at least 3 chars long',
        ),
        ({"type": "string", "pattern": "^a$"}, "b", "Invalid value: \"b\": spec.value in body should match '^a$'"),
        (
            {"type": "string", "enum": ["a", "b"]},
            "c",
            'Unsupported value: "c": supported values: "a", "b"',
        ),
        (
            {"type": "string", "format": "date"},
            "today",
            'Invalid value: "today": spec.value in body must be of type date: "today"',
        ),
        (
            {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
            1.5,
            "Invalid value: 1.5: spec.value in body should be less than 1.5",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "Too many: 2: must have at most 1 item",
        ),
        (
            {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
            {},
            "Invalid value: 0: spec.value in body should have at least 1 properties",
        ),
    ],
    ids=str,
)
def test_a_fault_is_told_as_the_server_tells_it(schema: dict[str, Any], value: Any, expected: str) -> None:
    """Field, kind of fault and sentence."""
    assert faults(schema, value) == [f"spec.value: {expected}"]


def test_the_place_of_a_fault_names_items_and_keys() -> None:
    """As deep as it is."""
    schema = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
    assert faults(schema, [{}, {"name": 1}])[0].startswith("spec.value[1].name: ")


def test_sets_and_map_lists_hold_each_item_once() -> None:
    """The second appearance is at fault."""
    assert faults(SHAPES["lists"]["properties"]["tags"], [1, 2, 1, 1]) == ["spec.value[2]: Duplicate value: 1"]
    ports = [{"name": "a"}, {"name": "a", "protocol": "UDP"}, {"name": "a", "protocol": "UDP"}]
    twice = 'spec.value[2]: Duplicate value: {"name":"a","protocol":"UDP"}'
    assert twice in faults(SHAPES["lists"]["properties"]["ports"], ports)


def test_rules_are_asked_once_the_shape_is_right() -> None:
    """And are said not to have been asked otherwise."""
    schema = SHAPES["rules"]
    good = {"low": 1, "high": 2}
    assert faults(schema, good) == []
    assert faults(schema, good | {"low": 3}) == ["spec.value.low: Invalid value: low is above high"]
    assert faults(schema, good | {"name": "Abc"}) == ["spec.value: Invalid value: Abc is taken"]
    assert faults(schema, good | {"items": [1]}) == ["spec.value.items[0]: Forbidden: failed rule: self % 2 == 0"]
    assert "division by zero" in faults(schema, good | {"quotas": {"a": 0}})[0]
    assert "were not checked" in faults(schema, {"low": "a"})[-1]


def test_transition_rules_are_asked_about_updates_only() -> None:
    """A new value has nothing to be compared with."""
    schema = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "only up"}]}
    assert faults(schema, 1) == []
    assert faults(schema, 1, old=2) == ["spec.value: Invalid value: 1: only up"]


def test_a_rule_can_ask_whether_there_was_an_old_value() -> None:
    """With optionalOldSelf it is asked about new values too."""
    rule = {"rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": True, "message": "starts at 0"}
    schema = {"type": "integer", "x-kubernetes-validations": [rule]}
    assert faults(schema, 1) == ["spec.value: Invalid value: 1: starts at 0"]
    assert faults(schema, 1, old=1) == []


def test_faults_that_were_there_before_are_forgiven() -> None:
    """A tightened schema does not block an update of something else."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "maximum": 1}, "b": {"type": "integer", "maximum": 1}},
    }
    assert faults(schema, {"a": 9, "b": 1}, old={"a": 9, "b": 0}) == []
    assert len(faults(schema, {"a": 9, "b": 9}, old={"a": 9, "b": 0})) == 1
    assert len(faults(schema, {"a": 8}, old={"a": 9})) == 1


def test_items_of_map_lists_are_forgiven_by_key() -> None:
    """Their order does not matter."""
    schema = SHAPES["lists"]["properties"]["names"]
    old = [{"name": "a", "number": "bad"}]
    assert faults(schema, [{"name": "b"}, {"name": "a", "number": "bad"}], old=old) == []
    assert len(faults(schema, [{"name": "b", "number": "bad"}], old=old)) == 1


def test_an_embedded_object_needs_a_type_and_sound_metadata() -> None:
    """Whatever its schema says."""
    schema = SHAPES["open"]["properties"]["d"]
    assert faults(schema, {"apiVersion": "v1", "kind": "Pod"}) == []
    assert faults(schema, {"kind": "Pod"}) == ["spec.value.apiVersion: Required value"]
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}
    assert faults(schema, bad)[0].startswith("spec.value.metadata.labels: Invalid value")
    for metadata in ({"name": "a/b"}, {"generateName": "a%"}, {"finalizers": ["a b"]}, {"namespace": "A"}, {"name": 1}):
        assert faults(schema, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})


def test_pruning_knows_the_fields_of_metadata() -> None:
    """Of the object itself and of those inside of it."""
    schema = Schema(schema_for(SHAPES["open"]["properties"]["d"]))
    inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "colour": "red", "labels": None}}
    value = {"metadata": {"name": "y", "extra": 1}, "spec": {"value": inner}}
    assert schema.prune(value) == ["metadata.extra", "spec.value.metadata.colour"]
    assert value["spec"]["value"]["metadata"] == {"name": "x"}  # type: ignore[index]  # a dict as written above


def test_metadata_is_left_without_what_is_empty() -> None:
    """As Go writes it; an empty value of another type is a mistake, which stays for the check to find."""
    schema = Schema(schema_for(SHAPES["open"]["properties"]["d"]))
    metadata = {"labels": {}, "finalizers": [], "generation": 0, "name": "", "annotations": "", "namespace": {}}
    value = {"spec": {"value": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}}
    assert schema.prune(value) == []
    assert metadata == {"annotations": "", "namespace": {}}


def test_an_integer_beyond_64_bits_is_shown_as_the_float_that_it_is_to_go() -> None:
    """Also where it is no field's value, but an item of the wrong type."""
    wrong = faults(SHAPES["lists"]["properties"]["names"], [2**63])
    assert (
        "spec.value[0]: Invalid value: 9.223372036854776e+18: must be an object for an array of list-type map" in wrong
    )


def test_defaults_fill_what_is_missing_and_what_may_not_be_null() -> None:
    """A nullable null is a value."""
    schema = SHAPES["nulls"]
    assert default({}, schema) == {"b": "b", "d": "d", "e": {"f": 1}}
    assert default({"b": None, "d": None}, schema) == {"b": "b", "d": None, "e": {"f": 1}}


def test_defaults_are_not_shared_between_objects() -> None:
    """Changing one object does not change the schema."""
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "default": []}}}
    default({}, schema)["a"].append("x")
    assert default({}, schema) == {"a": []}


def test_pruning_drops_what_is_unknown_and_says_so() -> None:
    """Paths as a strict server reports them; the type and the metadata are left alone."""
    schema = Schema({"type": "object", "properties": {"spec": SHAPES["lists"]}})
    value = {"kind": "A", "metadata": {"name": "x"}, "extra": 1, "spec": {"ports": [{"name": "a", "extra": 1}]}}
    assert schema.prune(value) == ["extra", "spec.ports[0].extra"]
    assert value == {"kind": "A", "metadata": {"name": "x"}, "spec": {"ports": [{"name": "a"}]}}


def test_pruning_keeps_what_is_to_be_preserved() -> None:
    """But known fields inside of it are pruned again."""
    schema = SHAPES["open"]
    value = {"a": {"x": 1}, "b": {"y": {"z": 1, "extra": 1}, "extra": 1}, "c": [{"extra": 1}]}
    assert prune(value, schema) == {"a": {"x": 1}, "b": {"y": {"z": 1}, "extra": 1}, "c": [{"extra": 1}]}


def test_nulls_that_mean_nothing_are_dropped_on_the_way_in() -> None:
    """As if they had not been sent."""
    schema = Schema({"type": "object", "properties": {"spec": SHAPES["nulls"]}})
    value: dict[str, Any] = {"spec": {"c": None, "g": {"x": None}, "b": "b"}}
    assert schema.admit(value) == []
    assert value == {"spec": {"b": "b", "g": {"x": None}, "d": "d", "e": {"f": 1}}}


def test_items_without_their_key_belong_to_those_with_its_default() -> None:
    """What was stored before the default is filled in is the same item."""
    item = {
        "type": "object",
        "properties": {"k": {"type": "string", "default": "a"}, "v": {"type": "integer", "maximum": 3}},
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    assert faults(keyed, [{"k": "b"}, {"k": "a", "v": 9}], [{"v": 9}]) == []


class LimitedSpec(Spec):
    size: Annotated[int, Meta(le=3)] = 1
    place: Annotated[str, Immutable()] = "here"


class Limited(Resource[LimitedSpec, Status], group="limits.example.com", version="v1"):
    """A kind with limits."""


def test_a_typed_object_is_checked_by_its_own_class() -> None:
    """With every cause, on creation and on update."""
    good = Limited(name="x")
    check(good)
    with pytest.raises(ValidationError, match=r"Limited 'x' is not valid; spec\.size: Invalid value: 9") as caught:
        check(Limited(name="x", spec=LimitedSpec(size=9)))
    assert [cause.field for cause in caught.value.causes] == ["spec.size"]
    with pytest.raises(ValidationError, match=r"spec\.place: Invalid value: \"there\": is immutable"):
        check(Limited(name="x", spec=LimitedSpec(place="there")), good)


class ExposedSpec(Spec, rules=(Rule("self.ports.all(port, port.protocol != 'SCTP')"),)):
    ports: Annotated[list[ContainerPort], ListMap("containerPort", "protocol"), Meta(max_length=3)] = []


class Exposed(Resource[ExposedSpec, Status], group="limits.example.com", version="v1"):
    """A kind with fields of a built-in type, to which its schema gives defaults."""


def test_a_typed_object_is_checked_with_its_defaults() -> None:
    """The server fills them in before it asks rules or looks for keys that are there twice."""
    open_, tcp = ContainerPort(container_port=80), ContainerPort(container_port=80, protocol="TCP")
    check(Exposed(name="x", spec=ExposedSpec(ports=[open_])))
    with pytest.raises(ValidationError, match=r"spec\.ports\[1\]: Duplicate value"):
        check(Exposed(name="x", spec=ExposedSpec(ports=[open_, tcp])))


def test_the_kind_with_everything_accepts_its_own_objects() -> None:
    """What a class makes, its schema takes."""
    check(kinds.Everything(name="x", spec=kinds.EverythingSpec(title="Title", origin=kinds.Web(url="http://a/b"))))


@pytest.mark.parametrize("shape", SHAPES)
def test_any_value_gets_an_answer(shape: str) -> None:
    """Never an exception, and what was admitted once is admitted again unchanged."""
    compiled = Schema({"type": "object", "properties": {"spec": SHAPES[shape]}})

    @settings(max_examples=30, derandomize=True, deadline=None)
    @given(st.one_of(values(SHAPES[shape], 1), values(SHAPES[shape], 2)))
    def ask(spec: Any) -> None:
        value = {"spec": copy.deepcopy(spec)}
        compiled.admit(value)
        compiled.validate(value)
        again = copy.deepcopy(value)
        assert compiled.admit(again) == []
        assert again == value
        assert compiled.validate(value, copy.deepcopy(value)) == [] or shape in {"open", "lists", "rules", "maps"}

    ask()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_the_generator_is_known(name: str) -> None:
    """The conformance tests compare each of them with the server."""
    assert is_known_format("string", name)
    assert format_check(name) is not None
    assert not is_known_format("integer", name)
