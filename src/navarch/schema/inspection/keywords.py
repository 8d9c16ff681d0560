"""Keywords of a schema, one node at a time: which exist, which an API server refuses, which go together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from navarch.schema.document import TYPE_FIELDS, JsonSchema
from navarch.schema.inspection.faults import DefinitionFault, unexpected
from navarch.schema.inspection.form import SCHEMA_FORM
from navarch.schema.inspection.lists import list_type_faults
from navarch.schema.inspection.structural import children, junctors

__all__ = ["JSON_TYPES", "keyword_faults"]

JSON_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_REFUSED = {"id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"}
_KNOWN = SCHEMA_FORM.keys() - _REFUSED
_ROOT_WITH_STATUS = _KNOWN - {
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "nullable",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
}


@dataclass(frozen=True, slots=True)
class _Surroundings:
    inside_metadata: bool = False
    no_defaults: str = ""


def keyword_faults(schema: JsonSchema, path: str, *, has_status: bool) -> Iterator[DefinitionFault]:
    """Every keyword of a kind's schema that the API server does not take."""
    if schema.get("nullable"):
        yield DefinitionFault(f"{path}.nullable", "expected an object at the root, got nullable", "remove nullable")
    surplus = [key for key in schema if key in _KNOWN and key not in _ROOT_WITH_STATUS]
    if has_status and surplus:
        yield DefinitionFault(
            path,
            f"expected the root of a kind with status to be plain, got {', '.join(surplus)}",
            "move it into spec, or write it as a rule",
        )
    yield from _node(schema, path, _Surroundings(), root=True)


def _node(schema: JsonSchema, path: str, around: _Surroundings, *, root: bool = False) -> Iterator[DefinitionFault]:
    yield from _unknown(schema, path)
    yield from _values(schema, path, around)
    yield from list_type_faults(schema, path)
    for child, inner in children(schema, path):
        yield from _node(child, inner, _inside(schema, inner.removeprefix(path), around, root=root))
    for part, inner in junctors(schema, path):
        yield from _node(part, inner, around)


def _inside(schema: JsonSchema, step: str, around: _Surroundings, *, root: bool) -> _Surroundings:
    name = step.removeprefix(".properties[").removesuffix("]")
    if (root or schema.get("x-kubernetes-embedded-resource")) and name in TYPE_FIELDS:
        return _Surroundings(inside_metadata=True, no_defaults=f"in top-level {name}" if root else around.no_defaults)
    if step == ".additionalProperties" and around.inside_metadata:
        return replace(around, no_defaults="in a map of the metadata")
    return around


def _unknown(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    for keyword in schema:
        if keyword in _REFUSED:
            yield unexpected(
                f"{path}.{keyword}", "keywords of structural schemas", keyword, "write the schema out in place"
            )
        elif keyword not in _KNOWN:
            yield unexpected(f"{path}.{keyword}", "a keyword of OpenAPI v3", keyword, "remove it")


def _values(schema: JsonSchema, path: str, around: _Surroundings) -> Iterator[DefinitionFault]:
    kind = schema.get("type")
    if kind and kind not in JSON_TYPES:
        yield unexpected(f"{path}.type", f"one of {', '.join(JSON_TYPES)}", repr(kind), "use one of them")
    if "default" in schema and around.no_defaults:
        yield unexpected(f"{path}.default", f"no default {around.no_defaults}", repr(schema["default"]), "remove it")
    if schema.get("uniqueItems"):
        yield unexpected(f"{path}.uniqueItems", "no uniqueItems", "true", "use ListSet")
    if schema.get("properties") and schema.get("additionalProperties"):
        yield unexpected(f"{path}.additionalProperties", "a struct or a map", "both", "keep one, or use Preserve")
    if isinstance(schema.get("items"), list):
        yield unexpected(f"{path}.items", "one schema for all items", "several", "keep one")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield unexpected(f"{path}.x-kubernetes-preserve-unknown-fields", "true or nothing", "false", "remove it")
    if around.inside_metadata and schema.get("x-kubernetes-embedded-resource"):
        yield unexpected(path, "no embedded resource inside metadata", "one", "move it into spec")
