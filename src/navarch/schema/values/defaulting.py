"""Defaulting and pruning: fills in defaults, removes unknown fields and nulls. All in place."""

from __future__ import annotations

import copy
from typing import Any

from navarch.api.meta import ObjectMeta
from navarch.api.model import fields_of
from navarch.schema.json_schema import TYPE_FIELDS, JsonSchema

_OPEN: JsonSchema = {}
_METADATA_FIELDS = frozenset(info.encode_name for info in fields_of(ObjectMeta))
_EMPTY_METADATA: dict[str, type] = {
    **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), str),
    **dict.fromkeys(("labels", "annotations"), dict),
    **dict.fromkeys(("finalizers", "ownerReferences", "managedFields"), list),
    "generation": int,
}
"""What metadata is left without where it is empty; a null is left out anyway."""


def fill_defaults(value: Any, schema: JsonSchema | None) -> None:
    """Sets missing fields, and nulls that the schema does not permit, to the default of the schema."""
    if not schema:
        return
    if isinstance(value, dict):
        properties = schema.get("properties") or _OPEN
        for name, child in properties.items():
            if child.get("default") is not None and (name not in value or _is_unset(value[name], child)):
                value[name] = copy.deepcopy(child["default"])
        for name, inner in value.items():
            child = properties.get(name) or _map_values(schema)
            if child is not None:
                value[name] = _filled(inner, child)
    elif isinstance(value, list):
        items = schema.get("items")
        for index, inner in enumerate(value):
            value[index] = _filled(inner, items) if items else inner


def _filled(value: Any, schema: JsonSchema) -> Any:
    if _is_unset(value, schema):
        value = copy.deepcopy(schema.get("default"))
    fill_defaults(value, schema)
    return value


def _is_unset(value: Any, schema: JsonSchema) -> bool:
    return value is None and not schema.get("nullable")


def _map_values(schema: JsonSchema) -> JsonSchema | None:
    values = schema.get("additionalProperties")
    return values if isinstance(values, dict) else None


def drop_nulls(value: Any, schema: JsonSchema | None) -> None:
    """Removes nulls that the schema does not permit and that have no default, as if they had not been sent."""
    schema = schema or _OPEN
    if isinstance(value, dict):
        for name in list(value):
            child = (schema.get("properties") or _OPEN).get(name) or _map_values(schema)
            if value[name] is None and child is not None and not child.get("nullable") and child.get("default") is None:
                del value[name]
            else:
                drop_nulls(value[name], child)
    elif isinstance(value, list):
        for inner in value:
            drop_nulls(inner, schema.get("items"))


def prune_unknown(value: Any, schema: JsonSchema, *, root: bool = True) -> list[str]:
    """Removes fields that the schema lacks and returns their paths. `root` keeps the type and metadata."""
    dropped: list[str] = []
    _prune(value, schema | {"x-kubernetes-embedded-resource": True} if root else schema, "", dropped)
    return sorted(dropped)


def _prune(value: Any, schema: JsonSchema | None, path: str, dropped: list[str]) -> None:
    keeps = schema is not None and bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if isinstance(value, dict):
        _prune_fields(value, schema, path, dropped, keeps=keeps)
    elif isinstance(value, list):
        items = schema.get("items") if schema is not None else None
        for index, inner in enumerate(value):
            if keeps:
                _prune_kept(inner, items, f"{path}[{index}]", dropped)
            else:
                _prune(inner, items, f"{path}[{index}]", dropped)


def _prune_fields(
    value: dict[str, Any], schema: JsonSchema | None, path: str, dropped: list[str], *, keeps: bool
) -> None:
    known = schema or _OPEN
    for name in list(value):
        inner_path = f"{path}.{name}" if path else name
        if known.get("x-kubernetes-embedded-resource") and name in TYPE_FIELDS:
            _prune_metadata(value[name], inner_path, dropped)
            continue
        child, found = _child(known, name)
        if found:
            _prune(value[name], child, inner_path, dropped)
        elif not keeps:
            dropped.append(inner_path)
            del value[name]


def _prune_metadata(metadata: Any, path: str, dropped: list[str]) -> None:
    """The metadata of an object has the fields it always has, whatever the schema says; what is empty there is nothing."""
    if not isinstance(metadata, dict):
        return
    for name in list(metadata):
        if name not in _METADATA_FIELDS:
            dropped.append(f"{path}.{name}")
        if name not in _METADATA_FIELDS or _is_empty(name, metadata[name]):
            del metadata[name]


def _is_empty(name: str, value: Any) -> bool:
    return value is None or (type(value) is _EMPTY_METADATA.get(name) and not value)


def _child(schema: JsonSchema, name: str) -> tuple[JsonSchema | None, bool]:
    properties = schema.get("properties") or _OPEN
    if name in properties:
        return properties[name], True
    if schema.get("additionalProperties") is None:
        return None, False
    return _map_values(schema), True


def _prune_kept(value: Any, items: JsonSchema | None, path: str, dropped: list[str]) -> None:
    """Items of a list that keeps what it does not know: pruned only as far as they have a schema."""
    if items is not None:
        kept = {"x-kubernetes-preserve-unknown-fields": True} | items
        _prune(value, kept, path, dropped)
