"""The CEL type of a structural schema, as the API server derives it, and the types of admission requests.

A part that a rule cannot reach has no type: a property without a type, a list without items, a name that no identifier
can spell. Types carry the largest size of a value, from which the cost of a rule is estimated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from navarch.errors import DefinitionError
from navarch.schema.cel import types
from navarch.schema.cel.lexer import escape
from navarch.schema.cel.types import (
    AUTHORIZER,
    BOOL,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
    object_of,
)

_TEXTS: Final = ("name", "namespace", "operation", "subResource", "requestSubResource")
_KIND: Final = object_of("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), STRING))
_RESOURCE: Final = object_of("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING))
_USER: Final = object_of(
    "kubernetes.UserInfo",
    {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
)
_REQUEST: Final = object_of(
    "kubernetes.AdmissionRequest",
    {
        **dict.fromkeys(_TEXTS, STRING),
        "kind": _KIND,
        "requestKind": _KIND,
        "resource": _RESOURCE,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)

REQUEST_VARIABLES: Final[Mapping[str, CelType]] = {
    "object": DYN,
    "oldObject": DYN,
    "request": _REQUEST,
    "authorizer": AUTHORIZER,
}

_CONDITION: Final = object_of(
    "kubernetes.NamespaceCondition",
    {**dict.fromkeys(("status", "type", "message", "reason"), STRING), "lastTransitionTime": TIMESTAMP},
)
_METADATA: Final = object_of(
    "kubernetes.NamespaceMetadata",
    {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        **dict.fromkeys(("labels", "annotations"), map_of(STRING, STRING)),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": list_of(STRING),
    },
)
NAMESPACE: Final = object_of(
    "kubernetes.Namespace",
    {
        "metadata": _METADATA,
        "spec": object_of("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)}),
        "status": object_of("kubernetes.NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}),
    },
)
"""The type of `namespaceObject`."""


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


def policy_environment(*, has_params: bool) -> dict[str, CelType]:
    """Returns the types of the variables that every expression of a policy has."""
    environment = {**REQUEST_VARIABLES, "namespaceObject": types.DYN}
    return {**environment, "params": types.DYN} if has_params else environment


def with_variables(environment: dict[str, CelType], known: Mapping[str, CelType]) -> dict[str, CelType]:
    """Returns the environment with `variables`, whose members are the policy's own."""
    return {**environment, "variables": types.object_of("kubernetes.variables", dict(known))}


def type_of_schema(schema: Schema, *, resource: bool = False, name: str = "self") -> CelType:
    """Returns the type of values that satisfy `schema`, with this name; `resource` for the root of a custom resource.

    Raises `DefinitionError` if rules cannot refer to such values.
    """
    found = _type(schema, name, resource or is_embedded(schema))
    if found is None:
        raise DefinitionError("a rule needs a schema with a type, and with items if it is an array")
    return found


def is_embedded(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def with_resource_fields(schema: Schema) -> Schema:
    """Returns the schema of a resource, with apiVersion, kind and the two names of its metadata."""
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
