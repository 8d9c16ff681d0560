"""Types that are one JSON value: strings, numbers, booleans, times, enums, and types with a wire form of their own."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Hashable
from typing import Any

import msgspec

from navarch.schema.document import JsonSchema
from navarch.schema.generation.annotations import literal_values, union_members

__all__ = ["QUANTITY_PATTERN", "enum_schema", "scalar_schema"]


QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_DURATION_PATTERN = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"

_PLAIN: dict[Any, JsonSchema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    dt.datetime: {"type": "string", "format": "date-time"},
    dt.date: {"type": "string", "format": "date"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
    object: {"x-kubernetes-preserve-unknown-fields": True},
    msgspec.Raw: {"x-kubernetes-preserve-unknown-fields": True},
}
# By name, so that describing a kind does not import types that it does not use.
_NAMED: dict[str, JsonSchema] = {
    "navarch.api.quantity.Quantity": {"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN},
    "navarch.api.duration.Duration": {"type": "string", "pattern": _DURATION_PATTERN},
    "navarch.api.times.MicroTime": {"type": "string", "format": "date-time"},
}
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def scalar_schema(core: Any) -> JsonSchema | None:
    """The schema of a type that needs no look inside; None if it is not of that sort.

    >>> scalar_schema(int)
    {'type': 'integer', 'format': 'int64'}
    """
    members = set(union_members(core))
    if members == {int, str}:
        return {"x-kubernetes-int-or-string": True}
    if members == {int, float}:
        return {"type": "number"}
    own = getattr(core, "json_schema", None)
    if own is not None and isinstance(core, type):
        return dict(own())
    known = _PLAIN.get(core) if isinstance(core, Hashable) else None
    known = known or _NAMED.get(f"{getattr(core, '__module__', '')}.{getattr(core, '__qualname__', '')}")
    return None if known is None else dict(known)


def enum_schema(core: Any) -> JsonSchema | None:
    """The schema of an `Enum` or `Literal`; None for other types, an empty one if the values are of several types."""
    values = _values(core)
    if values is None:
        return None
    found = {_JSON_TYPES.get(type(value)) for value in values}
    kind = found.pop() if len(found) == 1 else None
    return {} if kind is None else {"type": kind, "enum": list(values)}


def _values(core: Any) -> tuple[Any, ...] | None:
    if isinstance(core, type) and issubclass(core, enum.Enum):
        return tuple(member.value for member in core)
    values = literal_values(core)
    return None if values is None else tuple(value for value in values if value is not None)
