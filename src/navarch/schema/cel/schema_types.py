"""The CEL type of a structural schema, as the API server derives it.

What a rule cannot reach has no type: properties without a type, lists without items, names that no identifier can
spell. How large a value can be comes along, since the cost of a rule is estimated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from navarch.errors import DefinitionError
from navarch.schema.cel import types
from navarch.schema.cel.escaping import escape
from navarch.schema.cel.types import CelType

Schema = Mapping[str, Any]

MAX_REQUEST_BYTES = 3 * 1024 * 1024
_TEXT = {"type": "string"}
_META = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_FORMATS = {
    "duration": replace(types.DURATION, max_elements=32, min_size=3),
    "date": replace(types.TIMESTAMP, max_elements=12, min_size=12),
    "date-time": replace(types.TIMESTAMP, max_elements=32, min_size=21),
}
_SCALARS = {"boolean": types.BOOL, "number": types.DOUBLE, "integer": types.INT}


def type_of_schema(schema: Schema, *, resource: bool = False, name: str = "self") -> CelType:
    """The type of values that satisfy `schema`, called by this name; `resource` for the root of a custom resource.

    Raises `DefinitionError` if rules cannot be written about such values.
    """
    found = _type(schema, name, resource or is_embedded(schema))
    if found is None:
        raise DefinitionError("a rule needs a schema with a type, and with items if it is an array")
    return found


def is_embedded(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def with_resource_fields(schema: Schema) -> Schema:
    """The schema of a resource, with apiVersion, kind and the two names of its metadata."""
    known = schema.get("properties") or {}
    named = (known.get("metadata") or {}).get("properties") or {}
    if {"apiVersion", "kind"} <= known.keys() and {"name", "generateName"} <= named.keys():
        return schema
    return {**schema, "properties": {**known, "apiVersion": _TEXT, "kind": _TEXT, "metadata": _META}}


def _type(schema: Schema, name: str, resource: bool) -> CelType | None:
    if schema.get("x-kubernetes-int-or-string"):
        length = schema.get("maxLength")
        return replace(types.DYN, max_elements=MAX_REQUEST_BYTES - 2 if length is None else max(length, 0) * 4)
    if resource:
        schema = with_resource_fields(schema)
    match schema.get("type"):
        case "array":
            return _list(schema, name)
        case "object":
            values = schema.get("additionalProperties")
            return _map(schema, values, name) if isinstance(values, Mapping) else _object(schema, name)
        case "string":
            return _text(schema)
    return _SCALARS.get(schema.get("type", ""))


def _list(schema: Schema, name: str) -> CelType | None:
    items = schema.get("items")
    item = None if items is None else _type(items, f"{name}.@idx", is_embedded(items))
    if item is None:
        return None
    limit = schema.get("maxItems")
    fitting = (MAX_REQUEST_BYTES - 2) // (item.min_size + 1)
    return replace(types.list_of(item), max_elements=fitting if limit is None else max(limit, 0))


def _map(schema: Schema, values: Schema, name: str) -> CelType | None:
    value = _type(values, f"{name}.@elem", is_embedded(values))
    if value is None:
        return None
    limit = schema.get("maxProperties")
    fitting = (MAX_REQUEST_BYTES - 2) // (value.min_size + 6)
    return replace(types.map_of(types.STRING, value), max_elements=fitting if limit is None else max(limit, 0))


def _object(schema: Schema, name: str) -> CelType:
    required = frozenset(schema.get("required") or ())
    fields: dict[str, CelType] = {}
    smallest = 2
    for prop, inner in (schema.get("properties") or {}).items():
        escaped = escape(prop)
        found = _type(inner, f"{name}.{escaped or prop}", is_embedded(inner))
        if found is None:
            continue
        if escaped is not None:
            fields[escaped] = found
        if prop in required and inner.get("default") is None:
            smallest += len(prop.encode()) + found.min_size + 4
    return replace(types.object_of(name, fields), min_size=smallest)


def _text(schema: Schema) -> CelType:
    kind = schema.get("format")
    if kind in _FORMATS:
        return _FORMATS[kind]
    length = schema.get("maxLength")
    if kind == "byte":
        return replace(types.BYTES, max_elements=MAX_REQUEST_BYTES - 2 if length is None else max(length, 0))
    if length is not None:
        return replace(types.STRING, max_elements=max(length, 0) * 4)
    choices = [len(choice.encode()) for choice in schema.get("enum") or () if isinstance(choice, str)]
    longest = max(choices, default=0) if schema.get("enum") else MAX_REQUEST_BYTES - 2
    return replace(types.STRING, max_elements=longest)
