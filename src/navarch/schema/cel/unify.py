"""Which types fit which, and what a type parameter stands for once they do.

`dyn` fits everything; null fits objects, timestamps, durations and opaque types; a parameter takes the first
type it meets and becomes more general if a later one asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.schema.cel.types import DYN, CelType, Kind

_NULLABLE = frozenset({Kind.OPAQUE, Kind.OBJECT, Kind.TIMESTAMP, Kind.DURATION, Kind.NULL})
_ANYTHING = frozenset({Kind.DYN, Kind.ERROR})
_PARAMETRIC = frozenset({Kind.OPAQUE, Kind.LIST, Kind.MAP})


class Substitution:
    """What each type parameter stands for, so far."""

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}
        self._trail: list[tuple[str, CelType | None]] = []
        """What each binding since the beginning has replaced, so that a try can be taken back."""
        self._fresh = 0

    def fresh(self) -> CelType:
        """A parameter that nothing is known of yet."""
        self._fresh += 1
        return CelType(Kind.PARAMETER, f"_{self._fresh}")

    def fits(self, given: CelType, wanted: CelType) -> bool:
        """Whether `given` can stand where `wanted` is; parameters are bound only if so."""
        return self.all_fit([given], [wanted])

    def all_fit(self, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
        before = len(self._trail)
        if self._all_fit(given, wanted):
            return True
        while len(self._trail) > before:
            name, bound = self._trail.pop()
            if bound is None:
                del self._bound[name]
            else:
                self._bound[name] = bound
        return False

    def _bind(self, param: CelType, to: CelType) -> None:
        self._trail.append((param.name, self._bound.get(param.name)))
        self._bound[param.name] = to

    def resolve(self, unresolved: CelType, *, unbound_is_dyn: bool = False) -> CelType:
        """`unresolved` with every bound parameter replaced; the others become dyn if asked for."""
        if unresolved.kind is Kind.PARAMETER:
            if (bound := self._bound.get(unresolved.name)) is not None:
                return self.resolve(bound, unbound_is_dyn=unbound_is_dyn)
            return DYN if unbound_is_dyn else unresolved
        if not unresolved.params:
            return unresolved
        params = tuple(self.resolve(param, unbound_is_dyn=unbound_is_dyn) for param in unresolved.params)
        return unresolved if params == unresolved.params else CelType(unresolved.kind, unresolved.name, params)

    def _all_fit(self, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
        return len(given) == len(wanted) and all(map(self._fits, given, wanted))

    def _fits(self, given: CelType, wanted: CelType) -> bool:
        if wanted.kind is Kind.PARAMETER:
            valid, known = self._binds(wanted, given)
            if valid or known:
                return valid
        if given.kind is Kind.PARAMETER:
            return self._binds(given, wanted)[0]
        if _ANYTHING & {given.kind, wanted.kind}:
            return True
        if given.kind is Kind.NULL or wanted.kind is Kind.NULL:
            return (wanted if given.kind is Kind.NULL else given).kind in _NULLABLE
        if given.kind is not wanted.kind:
            return False
        if given.kind in _PARAMETRIC:
            return given.name == wanted.name and self._all_fit(given.params, wanted.params)
        return given.kind is not Kind.OBJECT or given == wanted

    def _binds(self, param: CelType, to: CelType) -> tuple[bool, bool]:
        """Whether `param` can stand for `to`, and whether it already stood for something."""
        if param == to:
            return True, True
        bound = self._bound.get(param.name)
        if bound is None:
            free = not self._occurs(param, to)
            if free:
                self._bind(param, to)
            return free, False
        if bound == to:
            return True, True
        if not self._fits(to, bound):
            return False, True
        general = most_general(to, bound)
        if not self._occurs(param, general):
            self._bind(param, general)
        return True, True

    def _occurs(self, param: CelType, within: CelType) -> bool:
        if param == within:
            return True
        if within.kind is Kind.PARAMETER:
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(param, bound)
        return any(self._occurs(param, inner) for inner in within.params)


def most_general(first: CelType, second: CelType) -> CelType:
    """The one of two fitting types that says less."""
    return first if _says_no_more(first, second) else second


def _says_no_more(first: CelType, second: CelType) -> bool:
    if first.kind in {Kind.DYN, Kind.PARAMETER}:
        return True
    if second.kind in {Kind.DYN, Kind.PARAMETER} or first.kind is not second.kind:
        return False
    if first.kind is Kind.TYPE:
        return True
    if first.kind in _PARAMETRIC:
        same_shape = first.name == second.name and len(first.params) == len(second.params)
        return same_shape and all(map(_says_no_more, first.params, second.params))
    return first == second
