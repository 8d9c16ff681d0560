"""Which overload a call means: known when it is compiled, or found by the values each time."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import FunctionType

from navarch.schema.cel.containers import equal
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.remedies import display
from navarch.schema.cel.signatures import Implementation, Overload
from navarch.schema.cel.types import CelType, Kind, unwrap_optional
from navarch.schema.cel.values import Optional, no_such_overload, runtime_type

_ANY = frozenset({Kind.DYN, Kind.PARAMETER})
_TAKES_ANYTHING = frozenset({"_[_]", "_[?_]", "@in", "_==_", "_!=_"})
_COMPARED_DIRECTLY = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.STRING, Kind.BYTES})


def implementation(overloads: tuple[Overload, ...], given: Sequence[CelType]) -> Implementation:
    """The function for a call whose arguments have these types."""
    first = overloads[0]
    if first.function in {"_==_", "_!=_"} and _alike(given):
        return operator.eq if first.call is equal else operator.ne
    if first.function in _TAKES_ANYTHING:
        return first.call
    if is_chosen_by_values(overloads, given):
        return lambda *values: chosen(overloads, values).call(*values)
    return _refusing_null(first) if isinstance(first.call, FunctionType) and first.function[0].isalpha() else first.call


def is_chosen_by_values(overloads: tuple[Overload, ...], given: Sequence[CelType]) -> bool:
    """Whether only the values tell which overload is meant, or whether there is one for them."""
    first = overloads[0]
    if first.function in _TAKES_ANYTHING:
        return False
    return len(overloads) > 1 or not all(map(_certain, given, first.params))


def _refusing_null(overload: Overload) -> Implementation:
    """An item of a nullable list is null whatever its type says; Python's own functions refuse it by themselves."""
    typed = [position for position, param in enumerate(overload.params) if param.kind not in _ANY]
    call = overload.call

    def run(*values: object) -> object:
        for position in typed:
            if values[position] is None:
                raise no_such_overload()
        return call(*values)

    return run if typed else call


def not_equal(left: object, right: object) -> bool:
    return not equal(left, right)


def _alike(given: Sequence[CelType]) -> bool:
    """Both of one simple type, which Python compares as CEL does."""
    return given[0].kind is given[1].kind and given[0].kind in _COMPARED_DIRECTLY


def _certain(given: CelType, wanted: CelType) -> bool:
    if wanted.kind in _ANY:
        return True
    return given.kind is wanted.kind and all(map(_certain, given.params, wanted.params))


def chosen(overloads: tuple[Overload, ...], values: Sequence[object]) -> Overload:
    """The first overload that takes these values. Raises `CelEvaluationError` if none does."""
    for overload in overloads:
        if all(map(accepts, overload.params, values)):
            return overload
    found = ", ".join(str(runtime_type(value)) for value in values)
    raise CelEvaluationError(f"no such overload: {display(overloads[0].function)} of ({found})")


def accepts(wanted: CelType, value: object) -> bool:
    """Whether a value is of a type; of a list or map only the first entry is looked at."""
    if wanted.kind in _ANY:
        return True
    found = runtime_type(value)
    if found.kind is not wanted.kind or (wanted.name != found.name and wanted.kind is not Kind.TYPE):
        return False
    if isinstance(value, list):
        return not value or accepts(wanted.params[0], value[0])
    if isinstance(value, dict):
        return not value or all(map(accepts, wanted.params, next(iter(value.items()))))
    if isinstance(value, Optional):
        return not value.present or accepts(unwrap_optional(wanted)[0], value.value)
    return True
