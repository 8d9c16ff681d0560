"""Arithmetic, comparison, indexing and `in`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from navarch.schema.cel.containers import concatenate, equal, index, index_if_present, member_of
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import Overload, function
from navarch.schema.cel.values import (
    INT_MIN,
    CelDuration,
    Timestamp,
    Uint,
    checked_duration,
    checked_int,
    checked_timestamp,
    checked_uint,
)

# In the order in which the server tries them: a value of unknown type takes the first that fits.
_ORDERED = {
    "bool": ("bool",),
    "int": ("int", "double", "uint"),
    "uint": ("uint", "double", "int"),
    "double": ("double", "int", "uint"),
    "string": ("string",),
    "bytes": ("bytes",),
    "timestamp": ("timestamp",),
    "duration": ("duration",),
}
_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _divide_int(left: int, right: int) -> int:
    """Towards zero, as everywhere but in Python."""
    if right == 0:
        raise CelEvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_uint(left: Uint, right: Uint) -> Uint:
    if right == 0:
        raise CelEvaluationError("division by zero")
    return Uint(left // right)


def _divide_double(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _modulo_int(left: int, right: int) -> int:
    """With the sign of the left side."""
    if right == 0:
        raise CelEvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise CelEvaluationError("integer overflow: the result does not fit 64 bits")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _modulo_uint(left: Uint, right: Uint) -> Uint:
    if right == 0:
        raise CelEvaluationError("modulus by zero")
    return Uint(left % right)


def _later(moment: Timestamp, by: CelDuration) -> Timestamp:
    return checked_timestamp(moment.nanos + by.nanos, moment.offset)


def _numeric(relation: Callable[[float, float], bool]) -> Callable[[float, float], bool]:
    """A comparison in which a double takes part; a NaN has no place in any order."""

    def compare(left: float, right: float) -> bool:
        first, second = float(left), float(right)
        if math.isnan(first) or math.isnan(second):
            raise CelEvaluationError("NaN values cannot be ordered")
        return relation(first, second)

    return compare


def _ordering(symbol: str) -> list[Overload]:
    relation, name = _RELATIONS[symbol], f"_{symbol}_"
    numeric = _numeric(relation)
    return [
        function(name, f"{pair} -> bool", numeric if "double" in pair else relation)
        for pair in (f"{left}, {right}" for left, rights in _ORDERED.items() for right in rights)
    ]


_ARITHMETIC = [
    function("_+_", "bytes, bytes -> bytes", operator.add),
    function("_+_", "double, double -> double", operator.add),
    function("_+_", "duration, duration -> duration", lambda left, right: checked_duration(left.nanos + right.nanos)),
    function("_+_", "duration, timestamp -> timestamp", lambda by, moment: _later(moment, by)),
    function("_+_", "timestamp, duration -> timestamp", _later),
    function("_+_", "int, int -> int", lambda left, right: checked_int(left + right)),
    function("_+_", "list(A), list(A) -> list(A)", concatenate),
    function("_+_", "string, string -> string", operator.add),
    function("_+_", "uint, uint -> uint", lambda left, right: checked_uint(left + right)),
    function("_-_", "double, double -> double", operator.sub),
    function("_-_", "duration, duration -> duration", lambda left, right: checked_duration(left.nanos - right.nanos)),
    function("_-_", "int, int -> int", lambda left, right: checked_int(left - right)),
    function("_-_", "timestamp, duration -> timestamp", lambda moment, by: _later(moment, CelDuration(-by.nanos))),
    function("_-_", "timestamp, timestamp -> duration", lambda left, right: checked_duration(left.nanos - right.nanos)),
    function("_-_", "uint, uint -> uint", lambda left, right: checked_uint(left - right)),
    function("_*_", "double, double -> double", operator.mul),
    function("_*_", "int, int -> int", lambda left, right: checked_int(left * right)),
    function("_*_", "uint, uint -> uint", lambda left, right: checked_uint(left * right)),
    function("_/_", "double, double -> double", _divide_double),
    function("_/_", "int, int -> int", _divide_int),
    function("_/_", "uint, uint -> uint", _divide_uint),
    function("_%_", "int, int -> int", _modulo_int),
    function("_%_", "uint, uint -> uint", _modulo_uint),
    function("-_", "double -> double", operator.neg),
    function("-_", "int -> int", lambda value: checked_int(-value)),
]


def _not_equal(left: object, right: object) -> bool:
    return not equal(left, right)


OVERLOADS = [
    *_ARITHMETIC,
    *(overload for symbol in _RELATIONS for overload in _ordering(symbol)),
    function("!_", "bool -> bool", operator.not_),
    function("_==_", "A, A -> bool", equal),
    function("_!=_", "A, A -> bool", _not_equal),
    function("_?_:_", "bool, A, A -> A", lambda condition, chosen, otherwise: chosen if condition else otherwise),
    function("@in", "A, list(A) -> bool", member_of),
    function("@in", "A, map(A, B) -> bool", member_of),
    function("_[_]", "list(A), int -> A", index),
    function("_[_]", "map(A, B), A -> B", index),
    function("_[_]", "optional(list(V)), int -> optional(V)", index),
    function("_[_]", "optional(map(K, V)), K -> optional(V)", index),
    function("_[?_]", "list(V), int -> optional(V)", index_if_present),
    function("_[?_]", "optional(list(V)), int -> optional(V)", index_if_present),
    function("_[?_]", "map(K, V), K -> optional(V)", index_if_present),
    function("_[?_]", "optional(map(K, V)), K -> optional(V)", index_if_present),
]
