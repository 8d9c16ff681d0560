"""Which old value belongs to which new one.

Fields and map values belong together by name, items of a map list by their keys; items of other lists have no old value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from navarch.schema.document import JsonSchema

__all__ = ["MISSING", "old_items", "same"]

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING"})()
"""There is no old value; None would be an old null."""


def same(old: Any, new: Any) -> bool:
    """Whether two JSON values are equal in type and value; 1, 1.0 and true are three values."""
    if type(old) is not type(new):
        return False
    if isinstance(new, dict):
        return len(old) == len(new) and all(key in old and same(old[key], value) for key, value in new.items())
    if isinstance(new, list):
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new)


def old_items(schema: JsonSchema, old: Any) -> Callable[[Any], Any]:
    """A function from an item of the new list to the old item of the same keys, or MISSING."""
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
