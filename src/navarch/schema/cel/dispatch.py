"""Chooses the overload of a call, at compile time or by its values, and runs it with its cost."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType

from navarch.schema.cel.call_costs import Price, call_cost
from navarch.schema.cel.containers import equal
from navarch.schema.cel.cost_tracker import CostExceededError, CostTracker
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.library.regex import with_pattern
from navarch.schema.cel.signatures import Implementation, Overload, display
from navarch.schema.cel.types import CelKind, CelType, unwrap_optional
from navarch.schema.cel.values import CelDuration, Optional, Timestamp, Uint, no_such_overload, runtime_type

_ANY = frozenset({CelKind.DYN, CelKind.PARAMETER})
_TAKES_ANYTHING = frozenset({"_[_]", "_[?_]", "@in", "_==_", "_!=_"})
_COMPARED_DIRECTLY = frozenset({CelKind.BOOL, CelKind.INT, CelKind.UINT, CelKind.DOUBLE, CelKind.STRING, CelKind.BYTES})


def implementation(overloads: tuple[Overload, ...], given: Sequence[CelType]) -> Implementation:
    """Returns the function for a call whose arguments have these types."""
    first = overloads[0]
    if first.function in {"_==_", "_!=_"} and _alike(given):
        return operator.eq if first.call is equal else operator.ne
    if first.function in _TAKES_ANYTHING:
        return first.call
    if is_chosen_by_values(overloads, given):
        return lambda *values: chosen(overloads, values).call(*values)
    return _refusing_null(first) if isinstance(first.call, FunctionType) and first.function[0].isalpha() else first.call


def is_chosen_by_values(overloads: tuple[Overload, ...], given: Sequence[CelType]) -> bool:
    """Returns True if only the values decide which overload applies, or whether one applies."""
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


def _alike(given: Sequence[CelType]) -> bool:
    """Both of one simple type, which Python compares as CEL does."""
    return given[0].kind is given[1].kind and given[0].kind in _COMPARED_DIRECTLY


def _certain(given: CelType, wanted: CelType) -> bool:
    if wanted.kind in _ANY:
        return True
    return given.kind is wanted.kind and all(map(_certain, given.params, wanted.params))


def chosen(overloads: tuple[Overload, ...], values: Sequence[object]) -> Overload:
    """Returns the first overload that accepts these values. Raises `CelEvaluationError` if none does."""
    for overload in overloads:
        if all(map(accepts, overload.params, values)):
            return overload
    found = ", ".join(str(runtime_type(value)) for value in values)
    raise CelEvaluationError(f"no such overload: {display(overloads[0].function)} of ({found})")


def accepts(wanted: CelType, value: object) -> bool:
    """Returns True if a value has a type; checks only the first entry of a list or map."""
    if wanted.kind in _ANY:
        return True
    found = runtime_type(value)
    if found.kind is not wanted.kind or (wanted.name != found.name and wanted.kind is not CelKind.TYPE):
        return False
    if isinstance(value, list):
        return not value or accepts(wanted.params[0], value[0])
    if isinstance(value, dict):
        return not value or all(map(accepts, wanted.params, next(iter(value.items()))))
    if isinstance(value, Optional):
        return not value.present or accepts(unwrap_optional(wanted)[0], value.value)
    return True


MeteredCall = Callable[..., object]
"""A call that takes the tracker before its values."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A planned call: `cost` is its constant cost; `metered` charges the tracker the cost that depends on the
    values.
    """

    cost: int
    plain: Implementation | None = None
    metered: MeteredCall | None = None


def invocation(overloads: tuple[Overload, ...], given: Sequence[CelType], pattern: str | None = None) -> Invocation:
    """Plans the call of a function whose arguments have these types; `pattern` is a constant regular expression."""
    if pattern is not None and given[0].kind in {CelKind.STRING, CelKind.DYN}:
        match = with_pattern(overloads[0].function, pattern)
        return Invocation(0, metered=_priced(match.price, match.call))
    if is_chosen_by_values(overloads, given):
        return Invocation(0, metered=_by_values(overloads, given))
    cost, call = call_cost(overloads[0], given), implementation(overloads, given)
    return Invocation(cost, plain=call) if isinstance(cost, int) else Invocation(0, metered=_priced(cost, call))


def _priced(price: Price, call: Implementation) -> MeteredCall:
    def run(tracker: CostTracker, *values: object) -> object:
        tracker.left -= price(*values)
        if tracker.left < 0:
            raise CostExceededError
        return call(*values)

    return run


def _by_values(overloads: tuple[Overload, ...], given: Sequence[CelType]) -> MeteredCall:
    prices = {id(overload): call_cost(overload, given) for overload in overloads}
    known: dict[tuple[type, ...], Overload] = {}

    def run(tracker: CostTracker, *values: object) -> object:
        kinds = tuple(map(type, values))
        overload = known.get(kinds)
        if overload is None:
            tracker.left -= _REFUSING
            overload = chosen(overloads, values)
            tracker.left += _REFUSING
            if _TELLING.issuperset(kinds):
                known[kinds] = overload
        price = prices[id(overload)]
        tracker.left -= price if isinstance(price, int) else price(*values)
        if tracker.left < 0:
            raise CostExceededError
        return overload.call(*values)

    return run


_REFUSING = 10
"""What values cost that no overload takes: saying so takes longer than most calls do."""
_TELLING = frozenset({bool, int, Uint, float, str, bytes, Timestamp, CelDuration})
"""Values whose Python type is all that an overload looks at."""
