"""Values that may be absent."""

from __future__ import annotations

from navarch.schema.cel.containers import is_zero
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.values import NONE, Optional, no_such_overload, some


def _value(wrapped: Optional) -> object:
    if not wrapped.present:
        raise CelEvaluationError("value() of an optional that has none; use orValue(…)")
    return wrapped.value


def _unwrap(items: list[object]) -> list[object]:
    found: list[object] = []
    for item in items:
        if not isinstance(item, Optional):
            raise no_such_overload()
        if item.present:
            found.append(item.value)
    return found


def _at(items: list[object], index: int) -> Optional:
    return some(items[index]) if items else NONE


OVERLOADS = [
    function("optional.of", "V -> optional(V)", some),
    function("optional.ofNonZeroValue", "V -> optional(V)", lambda value: NONE if is_zero(value) else some(value)),
    function("optional.none", "-> optional(V)", lambda: NONE),
    function("optional.unwrap", "list(optional(V)) -> list(V)", _unwrap),
    method("unwrapOpt", "list(optional(V)) -> list(V)", _unwrap),
    method("value", "optional(V) -> V", _value),
    method("hasValue", "optional(V) -> bool", lambda wrapped: wrapped.present),
    method("or", "optional(V), optional(V) -> optional(V)", lambda first, second: first if first.present else second),
    method("orValue", "optional(V), V -> V", lambda wrapped, other: wrapped.value if wrapped.present else other),
    method("first", "list(V) -> optional(V)", lambda items: _at(items, 0)),
    method("last", "list(V) -> optional(V)", lambda items: _at(items, -1)),
]
