"""Lists that are sets or maps: no value, and no combination of keys, is there twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from navarch.schema.document import JsonSchema
from navarch.schema.values.violations import Violation, below, duplicate, invalid

__all__ = ["compile_uniqueness"]

Check = Callable[[Any], list[Violation]]


def compile_uniqueness(schema: JsonSchema) -> Check | None:
    """A check of every set and map list inside of a value; None if the schema has none."""
    fields = {name: compile_uniqueness(child) for name, child in (schema.get("properties") or {}).items()}
    known = {name: check for name, check in fields.items() if check is not None}
    values, items = schema.get("additionalProperties"), schema.get("items")
    check_value = compile_uniqueness(values) if isinstance(values, dict) else None
    check_item = compile_uniqueness(items) if isinstance(items, dict) else None
    own = _own_check(schema)
    if not known and check_value is None and check_item is None and own is None:
        return None

    def check(value: Any) -> list[Violation]:
        found: list[Violation] = []
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


def _below(step: str, check: Check | None, value: Any) -> list[Violation]:
    return [] if check is None else below(step, check(value))


def _own_check(schema: JsonSchema) -> Check | None:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "set":
        return _repeated
    if list_type == "map":
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        return lambda values: _repeated_keys(values, keys)
    return None


def _repeated_keys(values: list[Any], keys: tuple[str, ...]) -> list[Violation]:
    for index, value in enumerate(values):
        if value is not None and not isinstance(value, dict):
            fault = invalid(value, "must be an object for an array of list-type map")
            fault.path = f"[{index}]"
            return [fault]
    chosen = [{key: value[key] for key in keys if key in value} if value else {} for value in values]
    return _repeated(chosen)


def _repeated(values: list[Any]) -> list[Violation]:
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
