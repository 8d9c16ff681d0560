"""Calls with their cost: how a planned expression runs a function of the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from navarch.schema.cel.call_costs import Price, call_cost
from navarch.schema.cel.dispatch import chosen, implementation, is_chosen_by_values
from navarch.schema.cel.library.regex import with_pattern
from navarch.schema.cel.runtime_cost import CostExceededError, CostTracker
from navarch.schema.cel.signatures import Implementation, Overload
from navarch.schema.cel.types import CelType, Kind
from navarch.schema.cel.values import Duration, Timestamp, Uint

__all__ = ["Invocation", "invocation"]

MeteredCall = Callable[..., object]
"""A call that takes the tracker before its values."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a call is made: `cost` is what it always costs; `metered` charges the tracker what depends on the values."""

    cost: int
    plain: Implementation | None = None
    metered: MeteredCall | None = None


def invocation(overloads: tuple[Overload, ...], given: Sequence[CelType], pattern: str | None = None) -> Invocation:
    """The call of a function whose arguments have these types; `pattern` is the regular expression, if it is a constant."""
    if pattern is not None and given[0].kind in {Kind.STRING, Kind.DYN}:
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
_TELLING = frozenset({bool, int, Uint, float, str, bytes, Timestamp, Duration})
"""Values whose Python type is all that an overload looks at."""
