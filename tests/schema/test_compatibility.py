"""Two CRDs compared: what a change does to objects and clients."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from navarch.api import Immutable, Meta, Preserve, Resource, Spec, Status
from navarch.schema import CrdChange, compare_crds, compare_versions, crd


def definition(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A CRD with one version, whose objects have this schema."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"scope": "Namespaced", "versions": [version | more]}, "status": {"storedVersions": ["v1"]}}


def of_field(old: dict[str, Any], new: dict[str, Any]) -> list[CrdChange]:
    """How a definition changes with the schema of its one field, `it`."""
    before, after = ({"type": "object", "properties": {"it": schema}} for schema in (old, new))
    return compare_crds(definition(before), definition(after))


NUMBER = {"type": "integer"}
TEXT = {"type": "string"}
MAP = {"type": "object", "additionalProperties": TEXT}
LIST = {"type": "array", "items": TEXT}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("old", "new", "rule", "verdict"),
    [
        (NUMBER, TEXT, "type", "refuses"),
        (NUMBER, {"type": "number"}, "type", "allows"),
        ({"type": "number"}, NUMBER, "type", "refuses"),
        (NUMBER, {"x-kubernetes-int-or-string": True}, "type", "allows"),
        ({"x-kubernetes-int-or-string": True}, TEXT, "type", "refuses"),
        (NUMBER, NUMBER | {"maximum": 5}, "maximum", "refuses"),
        (NUMBER | {"maximum": 9}, NUMBER | {"maximum": 5}, "maximum", "refuses"),
        (NUMBER | {"maximum": 5}, NUMBER | {"maximum": 9}, "maximum", "allows"),
        (NUMBER | {"maximum": 5}, NUMBER, "maximum", "allows"),
        (NUMBER | {"minimum": 1}, NUMBER | {"minimum": 2}, "minimum", "refuses"),
        (NUMBER | {"minimum": 2}, NUMBER | {"minimum": 1}, "minimum", "allows"),
        (NUMBER | {"minimum": 1}, NUMBER | {"minimum": 1, "exclusiveMinimum": True}, "exclusiveMinimum", "refuses"),
        (TEXT | {"maxLength": 9}, TEXT | {"maxLength": 5}, "maxLength", "refuses"),
        (LIST, LIST | {"maxItems": 3}, "maxItems", "refuses"),
        (MAP, MAP | {"minProperties": 1}, "minProperties", "refuses"),
        (TEXT, TEXT | {"enum": ["a"]}, "enum", "refuses"),
        (TEXT | {"enum": ["a", "b"]}, TEXT | {"enum": ["a"]}, "enum", "refuses"),
        (TEXT | {"enum": ["a"]}, TEXT | {"enum": ["a", "b"]}, "enum", "allows"),
        (TEXT | {"enum": ["a"]}, TEXT, "enum", "allows"),
        (TEXT, TEXT | {"pattern": "a+"}, "pattern", "refuses"),
        (TEXT | {"pattern": "a"}, TEXT | {"pattern": "a*"}, "pattern", "refuses"),
        (TEXT | {"pattern": "a"}, TEXT, "pattern", "allows"),
        (TEXT, TEXT | {"format": "uuid"}, "format", "refuses"),
        (TEXT | {"nullable": True}, TEXT, "nullable", "refuses"),
        (TEXT, TEXT | {"nullable": True}, "nullable", "allows"),
        (TEXT, TEXT | {"default": "a"}, "default", "behaves"),
        (TEXT | {"default": "a"}, TEXT | {"default": "b"}, "default", "behaves"),
        (TEXT, TEXT | {"x-kubernetes-validations": [{"rule": "self != ''"}]}, "x-kubernetes-validations", "refuses"),
        (TEXT | {"x-kubernetes-validations": [{"rule": "true"}]}, TEXT, "x-kubernetes-validations", "allows"),
        (LIST, LIST | {"x-kubernetes-list-type": "set"}, "x-kubernetes-list-type", "refuses"),
        (LIST | {"x-kubernetes-list-type": "set"}, LIST, "x-kubernetes-list-type", "behaves"),
        (OPEN, {"type": "object"}, "additionalProperties", "loses"),
        (MAP, {"type": "object"}, "additionalProperties", "loses"),
        ({"type": "object"}, OPEN, None, None),
        (TEXT | {"description": "old"}, TEXT | {"description": "new"}, None, None),
    ],
)  # fmt: skip
def test_each_keyword_has_its_verdict(
    old: dict[str, Any], new: dict[str, Any], rule: str | None, verdict: str | None
) -> None:
    """Whoever tightens a rule refuses objects; whoever drops a place for data loses them."""
    expected = [] if rule is None else [(rule, verdict)]
    assert [(change.rule, change.verdict) for change in of_field(old, new)] == expected


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ({"type": "object", "properties": {"a": TEXT}}, {"type": "object"}, "v1 it.a"),
        (LIST | {"items": {"type": "object", "properties": {"a": TEXT}}}, LIST | {"items": {"type": "object"}}, "v1 it[].a"),
        (
            MAP | {"additionalProperties": {"type": "object", "properties": {"a": TEXT}}},
            MAP | {"additionalProperties": {"type": "object"}},
            "v1 it[*].a",
        ),
    ],
)  # fmt: skip
def test_removed_property_is_found_at_any_depth(old: dict[str, Any], new: dict[str, Any], path: str) -> None:
    """In objects, lists and maps; the path is the one that users write."""
    (change,) = of_field(old, new)
    assert (change.path, change.rule, change.verdict) == (path, "properties", "loses")
    assert str(change) == f"{path}: the property is removed"


def test_removed_property_is_kept_where_unknown_fields_are() -> None:
    """Nothing is pruned there, so nothing is lost; a map has a schema for the value instead."""
    one = {"type": "object", "properties": {"a": TEXT}}
    assert of_field(one, OPEN) == []
    (change,) = of_field(one, MAP | {"additionalProperties": NUMBER})
    assert (change.path, change.rule, change.verdict) == ("v1 it.a", "type", "refuses")


@pytest.mark.parametrize(("before", "verdict"), [({"type": "object"}, "allows"), (OPEN, "refuses"), (MAP, "refuses")])
def test_new_property_refuses_only_what_could_be_there(before: dict[str, Any], verdict: str) -> None:
    """A place that held anything, or values of another type, may hold what the new schema does not take."""
    after = before | {"properties": {"a": NUMBER}}
    assert {change.verdict for change in of_field(before, after)} == {verdict}


def test_required_property_refuses_unless_it_has_a_default() -> None:
    """Defaults are filled in before objects are checked."""
    plain = {"type": "object", "properties": {"a": TEXT}}
    filled = {"type": "object", "properties": {"a": TEXT | {"default": "x"}}}
    assert [change.verdict for change in of_field(plain, plain | {"required": ["a"]})] == ["refuses"]
    assert [change.verdict for change in of_field(filled, filled | {"required": ["a"]})] == ["allows"]


def test_scope_and_versions_are_compared() -> None:
    """A version in which objects are stored is worth more than one that is only served."""
    old = definition({"type": "object"})
    old["spec"]["versions"].append({"name": "v2", "served": True, "schema": {}})
    new = definition({"type": "object"})
    new["spec"]["versions"][0]["name"] = "v3"
    new["spec"]["scope"] = "Cluster"
    found = {(change.path, change.rule): change.verdict for change in compare_crds(old, new)}
    assert found == {
        ("scope", "scope"): "loses",
        ("v1", "versions"): "loses",
        ("v2", "versions"): "refuses",
        ("v3", "versions"): "allows",
    }


def test_subresources_and_selectable_fields_are_compared() -> None:
    """Requests to what is gone are refused."""
    rich = definition(
        {"type": "object"},
        subresources={"status": {}, "scale": {}},
        selectableFields=[{"jsonPath": ".spec.color"}],
    )
    plain = definition({"type": "object"})
    assert [(change.path, change.verdict) for change in compare_crds(rich, plain)] == [
        ("v1 /scale", "refuses"),
        ("v1 /status", "refuses"),
        ("v1 spec.color", "refuses"),
    ]
    assert [(change.path, change.verdict) for change in compare_crds(plain, rich)] == [
        ("v1 /scale", "allows"),
        ("v1 /status", "behaves"),
    ]


class BoatSpec(Spec):
    sails: Annotated[int, Meta(ge=1)] = 1
    flag: Annotated[str, Immutable()] = "blue"


class Boat(Resource[BoatSpec, Status], group="compare.example.com", version="v1"):
    """A boat."""


class LargerSpec(BoatSpec):
    masts: int = 1
    cargo: Annotated[dict[str, Any], Preserve()] = {}


class LargerBoat(Resource[LargerSpec, Status], group="compare.example.com", version="v1", kind="Boat"):
    """A boat of the next release."""


class NewBoat(Resource[LargerSpec, Status], group="compare.example.com", version="v2", kind="Boat"):
    """A boat of the next version."""


class OldBoat(Boat, version="v1", storage=False): ...


def test_definitions_of_classes_are_compared() -> None:
    """The same class makes no difference, a wider one is safe, a narrower one is not."""
    assert compare_crds(crd(Boat), crd(Boat)) == []
    assert not [change for change in compare_crds(crd(Boat), crd(LargerBoat)) if change.is_breaking]
    lost = [change.path for change in compare_crds(crd(LargerBoat), crd(Boat)) if change.is_breaking]
    assert lost == ["v1 spec.masts", "v1 spec.cargo"]


def test_versions_without_conversion_lose_fields_that_one_of_them_lacks() -> None:
    """A webhook may carry them over; without one the versions are only names."""
    both = crd(OldBoat, NewBoat)
    assert [str(change) for change in compare_versions(both)] == [
        "v2 spec.masts: a write as v1 removes it",
        "v2 spec.cargo: a write as v1 removes it",
    ]
    both["spec"]["conversion"] = {"strategy": "Webhook"}
    assert compare_versions(both) == []
