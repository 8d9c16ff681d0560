"""Lists that are sets or maps, and maps that are atomic."""

from __future__ import annotations

from collections.abc import Iterator

from navarch.schema.document import JsonSchema
from navarch.schema.inspection.faults import DefinitionFault, unexpected

__all__ = ["list_type_faults"]


def list_type_faults(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """What is wrong with the list type or map type of one node."""
    kind, list_type, map_type = (
        schema.get("type"),
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-map-type"),
    )
    if map_type is not None and (kind != "object" or map_type not in {"atomic", "granular"}):
        yield unexpected(
            path, "an atomic or granular object", f"{map_type} on type {kind}", "mark a map or struct Atomic()"
        )
    if list_type is not None and (kind != "array" or list_type not in {"atomic", "set", "map"}):
        yield unexpected(path, "an atomic, set or map list", f"{list_type} on type {kind}", "move the marker to a list")
    if schema.get("x-kubernetes-list-map-keys") and list_type != "map":
        yield unexpected(path, "map keys on a map list", f"list type {list_type}", "use ListMap(...)")
    items = schema.get("items")
    if isinstance(items, dict) and list_type in {"set", "map"}:
        if items.get("nullable"):
            yield unexpected(
                f"{path}.items.nullable", f"items of a {list_type} that are never null", "nullable", "remove it"
            )
        yield from _set_faults(items, path) if list_type == "set" else _map_faults(schema, items, path)


def _set_faults(items: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    kind = items.get("type")
    if kind == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        yield unexpected(
            f"{path}.items", "scalars, or atomic items, in a set", "a list that is merged", "mark it Atomic()"
        )
    if kind == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield unexpected(
            f"{path}.items", "scalars in a set", "objects", "use ListMap with the keys that tell items apart"
        )


def _map_faults(schema: JsonSchema, items: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    keys = schema.get("x-kubernetes-list-map-keys", [])
    if not keys:
        yield unexpected(f"{path}.x-kubernetes-list-map-keys", "at least one key", "none", 'write ListMap("name")')
    if items.get("type") != "object":
        yield unexpected(f"{path}.items.type", "structs in a map list", items.get("type"), "use ListSet for scalars")
        return
    if len(set(keys)) < len(keys):
        yield unexpected(
            f"{path}.x-kubernetes-list-map-keys", "each key once", ", ".join(keys), "remove the repetition"
        )
    properties = items.get("properties", {})
    for key in keys:
        if key not in properties:
            remedy = f"use wire names: {', '.join(properties) or 'there are none'}"
            yield unexpected(
                f"{path}.x-kubernetes-list-map-keys", "keys that are fields of the items", repr(key), remedy
            )
        else:
            yield from _key_faults(key, properties[key], items, f"{path}.items.properties[{key}]")


def _key_faults(key: str, field: JsonSchema, items: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    if field.get("type") in {"array", "object"}:
        yield unexpected(
            f"{path}.type", "a scalar, since it is the key of a map list", field["type"], "use another key"
        )
    if key not in items.get("required", ()) and field.get("default") is None:
        yield unexpected(
            f"{path}.default",
            "the key of a map list to be required or to have a default",
            "neither",
            "remove `| None`, or give it a default",
        )
    if field.get("nullable"):
        yield unexpected(f"{path}.nullable", "the key of a map list to be never null", "nullable", "remove it")
