"""Sets and map lists: checks that items are unique, and pairs new items with old ones.

Fields and map values correlate by name, items of a map list by their keys; items of other lists have no old value.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from navarch.schema.json_schema import JsonSchema
from navarch.schema.values.violations import SchemaViolation, below, duplicate, invalid

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING"})()
"""Stands for a missing old value; None would be an old null."""


def same(old: Any, new: Any) -> bool:
    """Returns True if two JSON values are equal in type and value; 1, 1.0 and true are three values."""
    if type(old) is not type(new):
        return False
    if isinstance(new, dict):
        return len(old) == len(new) and all(key in old and same(old[key], value) for key, value in new.items())
    if isinstance(new, list):
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new)


def old_items(schema: JsonSchema, old: Any) -> Callable[[Any], Any]:
    """Returns a function from an item of the new list to the old item with the same keys, or MISSING."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map" or not keys:
        return lambda _: MISSING
    defaults = {key: schema["items"].get("properties", {}).get(key, {}).get("default") for key in keys}

    def identity(item: Any) -> Any:
        if not isinstance(item, dict):
            return None
        values = [item.get(key, defaults[key]) for key in keys]
        return tuple((type(value), repr(value)) for value in values)

    known = {identity(item): item for item in reversed(old) if isinstance(item, dict)}
    return lambda item: known.get(identity(item), MISSING)


Check = Callable[[Any], list[SchemaViolation]]


def compile_uniqueness(schema: JsonSchema) -> Check | None:
    """Returns a check of every set and map list inside of a value; None if the schema has none."""
    fields = {name: compile_uniqueness(child) for name, child in (schema.get("properties") or {}).items()}
    known = {name: check for name, check in fields.items() if check is not None}
    values, items = schema.get("additionalProperties"), schema.get("items")
    check_value = compile_uniqueness(values) if isinstance(values, dict) else None
    check_item = compile_uniqueness(items) if isinstance(items, dict) else None
    own = _own_check(schema)
    if not known and check_value is None and check_item is None and own is None:
        return None

    def check(value: Any) -> list[SchemaViolation]:
        found: list[SchemaViolation] = []
        if isinstance(value, list):
            found += own(value) if own is not None else ()
            for index, inner in enumerate(value if check_item is not None else ()):
                found += _below(f"[{index}]", check_item, inner)
        elif isinstance(value, dict):
            for name, inner in value.items():
                found += _below(f".{name}", known.get(name), inner)
                found += _below(f"[{name}]", check_value, inner)
        return found

    return check


def _below(step: str, check: Check | None, value: Any) -> list[SchemaViolation]:
    return [] if check is None else below(step, check(value))


def _own_check(schema: JsonSchema) -> Check | None:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "set":
        return _repeated
    if list_type == "map":
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        return lambda values: _repeated_keys(values, keys)
    return None


def _repeated_keys(values: list[Any], keys: tuple[str, ...]) -> list[SchemaViolation]:
    for index, value in enumerate(values):
        if value is not None and not isinstance(value, dict):
            fault = invalid(value, "must be an object for an array of list-type map")
            fault.path = f"[{index}]"
            return [fault]
    chosen = [{key: value[key] for key in keys if key in value} if value else {} for value in values]
    return _repeated(chosen)


def _repeated(values: list[Any]) -> list[SchemaViolation]:
    """A fault at the second appearance of each value; further ones are not repeated."""
    seen: dict[str, int] = {}
    found = []
    for index, value in enumerate(values):
        identity = json.dumps(value, sort_keys=True)
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            fault = duplicate(value)
            fault.path = f"[{index}]"
            found.append(fault)
    return found
