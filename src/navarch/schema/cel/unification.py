"""Decides which types fit each other, and binds type parameters.

`dyn` fits everything; null fits objects, timestamps, durations and opaque types; a parameter takes the first type it
meets and becomes more general if a later one requires it.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.schema.cel.types import DYN, CelKind, CelType

_NULLABLE = frozenset({CelKind.OPAQUE, CelKind.OBJECT, CelKind.TIMESTAMP, CelKind.DURATION, CelKind.NULL})
_ANYTHING = frozenset({CelKind.DYN, CelKind.ERROR})
_PARAMETRIC = frozenset({CelKind.OPAQUE, CelKind.LIST, CelKind.MAP})


class Substitution:
    """The types that parameters are bound to, so far."""

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}
        self._trail: list[tuple[str, CelType | None]] = []
        """What each binding since the beginning has replaced, so that a try can be taken back."""
        self._fresh = 0

    def fresh(self) -> CelType:
        """Returns a new, unbound parameter."""
        self._fresh += 1
        return CelType(CelKind.PARAMETER, f"_{self._fresh}")

    def fits(self, given: CelType, wanted: CelType) -> bool:
        """Returns True if `given` can replace `wanted`; binds parameters only then."""
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
        """Returns `unresolved` with every bound parameter replaced; the others become dyn on request."""
        if unresolved.kind is CelKind.PARAMETER:
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
        if wanted.kind is CelKind.PARAMETER:
            valid, known = self._binds(wanted, given)
            if valid or known:
                return valid
        if given.kind is CelKind.PARAMETER:
            return self._binds(given, wanted)[0]
        if given.kind in _ANYTHING or wanted.kind in _ANYTHING:
            return True
        if given.kind is CelKind.NULL or wanted.kind is CelKind.NULL:
            return (wanted if given.kind is CelKind.NULL else given).kind in _NULLABLE
        if given.kind is not wanted.kind:
            return False
        if given.kind in _PARAMETRIC:
            return given.name == wanted.name and self._all_fit(given.params, wanted.params)
        return given.kind is not CelKind.OBJECT or given == wanted

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
        if within.kind is CelKind.PARAMETER:
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(param, bound)
        return any(self._occurs(param, inner) for inner in within.params)


def most_general(first: CelType, second: CelType) -> CelType:
    """Returns the more general of two fitting types."""
    return first if _says_no_more(first, second) else second


def _says_no_more(first: CelType, second: CelType) -> bool:
    if first.kind in {CelKind.DYN, CelKind.PARAMETER}:
        return True
    if second.kind in {CelKind.DYN, CelKind.PARAMETER} or first.kind is not second.kind:
        return False
    if first.kind is CelKind.TYPE:
        return True
    if first.kind in _PARAMETRIC:
        same_shape = first.name == second.name and len(first.params) == len(second.params)
        return same_shape and all(map(_says_no_more, first.params, second.params))
    return first == second
