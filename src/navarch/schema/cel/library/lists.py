"""Lists, sets and optionals: sorting, summing, searching, slicing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from navarch.schema.cel.containers import contains, equal, is_zero
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import Overload, function, method
from navarch.schema.cel.values import (
    NONE,
    CelDuration,
    Optional,
    Uint,
    checked_duration,
    checked_int,
    checked_uint,
    no_such_overload,
    runtime_type,
    some,
)


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


_OPTIONAL_OVERLOADS = [
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


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _is_sorted(items: list[Any]) -> bool:
    return not any(second < first for first, second in pairwise(items))


def _extreme(name: str, choose: Callable[[list[Any]], object]) -> Callable[[list[Any]], object]:
    def find_extreme(items: list[Any]) -> object:
        if not items:
            raise CelEvaluationError(f"{name}() of an empty list")
        return choose(items)

    return find_extreme


def _sum_ints(items: list[int]) -> int:
    total = 0
    for item in items:
        total = checked_int(total + item)
    return total


def _sum_uints(items: list[Uint]) -> Uint:
    return checked_uint(sum(items))


def _sum_doubles(items: list[float]) -> float:
    return sum(items, 0.0)


def _sum_durations(items: list[CelDuration]) -> CelDuration:
    total = CelDuration(0)
    for item in items:
        total = checked_duration(total.nanos + item.nanos)
    return total


def _index_of(items: list[object], wanted: object) -> int:
    return next((index for index, item in enumerate(items) if equal(item, wanted)), -1)


def _last_index_of(items: list[object], wanted: object) -> int:
    backwards = _index_of(items[::-1], wanted)
    return -1 if backwards < 0 else len(items) - 1 - backwards


def _distinct(items: list[object]) -> list[object]:
    found: list[object] = []
    for item in items:
        if not contains(found, item):
            found.append(item)
    return found


def _flatten(items: list[object], depth: int = 1) -> list[object]:
    if depth < 0:
        raise CelEvaluationError(f"flatten({depth}): the depth must not be negative")
    flat: list[object] = []
    for item in items:
        flat.extend(_flatten(item, depth - 1) if isinstance(item, list) and depth else [item])
    return flat


def _slice(items: list[object], start: int, end: int) -> list[object]:
    if not 0 <= start <= end <= len(items):
        raise CelEvaluationError(f"cannot slice({start}, {end}) of a list of {len(items)}")
    return items[start:end]


def _sort(items: list[Any]) -> list[object]:
    return _sort_by(items, items)


def _sort_by(items: list[object], keys: list[Any]) -> list[object]:
    if len({runtime_type(key) for key in keys}) > 1:
        raise CelEvaluationError("a list whose items are of different types cannot be sorted")
    order = sorted(range(len(items)), key=keys.__getitem__)
    return [items[position] for position in order]


def _intersects(left: list[object], right: list[object]) -> bool:
    return any(contains(left, item) for item in right)


def _contains_all(left: list[object], right: list[object]) -> bool:
    return all(contains(left, item) for item in right)


def _for_each_comparable(name: str, signature: str, call: Callable[..., object]) -> list[Overload]:
    return [method(name, signature.replace("C", each), call) for each in _COMPARABLE]


OVERLOADS = [
    *_for_each_comparable("isSorted", "list(C) -> bool", _is_sorted),
    *_for_each_comparable("min", "list(C) -> C", _extreme("min", min)),
    *_for_each_comparable("max", "list(C) -> C", _extreme("max", max)),
    *_for_each_comparable("sort", "list(C) -> list(C)", _sort),
    *_for_each_comparable("@sortByAssociatedKeys", "list(T), list(C) -> list(T)", _sort_by),
    method("sum", "list(int) -> int", _sum_ints),
    method("sum", "list(uint) -> uint", _sum_uints),
    method("sum", "list(double) -> double", _sum_doubles),
    method("sum", "list(duration) -> duration", _sum_durations),
    method("indexOf", "list(A), A -> int", _index_of),
    method("lastIndexOf", "list(A), A -> int", _last_index_of),
    method("distinct", "list(T) -> list(T)", _distinct),
    method("flatten", "list(list(T)) -> list(T)", _flatten),
    method("flatten", "list(dyn), int -> list(dyn)", _flatten),
    method("slice", "list(T), int, int -> list(T)", _slice),
    method("reverse", "list(T) -> list(T)", lambda items: items[::-1]),
    function("lists.range", "int -> list(int)", lambda count: list(range(count))),
    function("sets.contains", "list(T), list(T) -> bool", _contains_all),
    function(
        "sets.equivalent",
        "list(T), list(T) -> bool",
        lambda left, right: _contains_all(left, right) and _contains_all(right, left),
    ),
    function("sets.intersects", "list(T), list(T) -> bool", _intersects),
    *_OPTIONAL_OVERLOADS,
]
