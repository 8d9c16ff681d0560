"""Estimates the cost of calls and the size of their results, as the API server does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from navarch.schema.cel import types
from navarch.schema.cel.expressions import Expr, LiteralExpr
from navarch.schema.cel.signatures import Overload
from navarch.schema.cel.types import CelKind

LARGEST = (1 << 64) - 1


class SizeEstimate(NamedTuple):
    """The fewest and the most characters, bytes, items or entries of a value."""

    least: int
    most: int

    def plus(self, other: SizeEstimate) -> SizeEstimate:
        return SizeEstimate(capped(self.least + other.least), capped(self.most + other.most))

    def times(self, other: SizeEstimate) -> SizeEstimate:
        return SizeEstimate(capped(self.least * other.least), capped(self.most * other.most))

    def union(self, other: SizeEstimate) -> SizeEstimate:
        return SizeEstimate(min(self.least, other.least), max(self.most, other.most))


UNKNOWN = SizeEstimate(0, LARGEST)
ONE = SizeEstimate(1, 1)


class EntrySize(NamedTuple):
    """The sizes of the entries of a list or map; a list's keys are its indices."""

    is_list: bool
    key: SizeEstimate
    value: SizeEstimate

    def union(self, other: EntrySize | None) -> EntrySize | None:
        if other is None:
            return None
        return EntrySize(self.is_list, self.key.union(other.key), self.value.union(other.value))


def capped(number: int) -> int:
    return min(number, LARGEST)


def scaled(number: int, factor: float) -> int:
    """Returns `number` times `factor`, rounded up."""
    product = math.ceil(float(number) * factor)
    return LARGEST if product >= 1 << 64 else product


TRAVERSAL = 0.1
REGEX = 0.25
LIST_COST = 10
MAP_COST = 30
MESSAGE_COST = 40
_LONGEST_NAMED_FORMAT = 64
_LONGEST_NAME_PATTERN = 128
_ADDRESS = SizeEstimate(4, 16)
_TEXTUAL = frozenset({CelKind.STRING, CelKind.BYTES})
_CHEAP_TO_COMPARE = frozenset({types.IP.name, types.CIDR.name, types.QUANTITY.name, types.SEMVER.name})


@dataclass(frozen=True, slots=True)
class Estimated:
    """The most that a call can cost, without its arguments, and the size of its result if it is known."""

    cost: int
    size: SizeEstimate | None = None


@dataclass(frozen=True, slots=True)
class CallView:
    """A call as its estimate sees it; a method's target is the first operand."""

    overload: Overload
    operands: Sequence[Expr]
    known_sizes: Sequence[SizeEstimate | None]
    element_size: SizeEstimate | None
    """The size of the target's items, if the target is a list."""

    def size(self, position: int) -> SizeEstimate:
        known = self.known_sizes[position]
        return UNKNOWN if known is None else known


Rule: TypeAlias = Callable[[CallView], Estimated]


def estimate_call(call: CallView) -> Estimated:
    """Returns the estimate for one overload."""
    rule = _RULES.get(call.overload.function)
    return Estimated(1) if rule is None else rule(call)


def _traverse(position: int = 0, *, times: int = 1, keeps_size: bool = False) -> Rule:
    """Going through one operand's text."""

    def estimate(call: CallView) -> Estimated:
        size = call.size(position)
        return Estimated(scaled(size.most, times * TRAVERSAL), size if keeps_size else None)

    return estimate


def _each_item(call: CallView) -> Estimated:
    target = call.size(0)
    if call.element_size is None:
        return Estimated(scaled(target.most, TRAVERSAL))
    textual = call.operands[0].type.params[0].kind in _TEXTUAL
    per_item = 1 + (scaled(call.element_size.most, TRAVERSAL) if textual else 0)
    return Estimated(capped(target.most * per_item))


def _replace(call: CallView) -> Estimated:
    text, old, new = call.size(0), call.size(1), call.size(2)
    if old.least == 0:
        longest = capped(capped(text.most + 1) * new.most) + text.most
    elif new.most <= old.least:
        longest = text.most
    else:
        longest = math.ceil(text.most / old.least) * new.most
    if old.most == 0:
        shortest = capped(text.least + 1) * new.least + text.least
    elif old.most <= new.least:
        shortest = text.least
    else:
        shortest = math.ceil(text.least / old.most) * new.least
    return Estimated(scaled(text.most, 2 * TRAVERSAL), SizeEstimate(capped(shortest), capped(longest)))


def _split(call: CallView) -> Estimated:
    text = call.size(0)
    most = text.most
    if len(call.operands) > 2 and isinstance(call.operands[2], LiteralExpr):
        limit = call.operands[2].value
        most = limit & LARGEST if isinstance(limit, int) else most
    return Estimated(scaled(text.most, 2 * TRAVERSAL), SizeEstimate(0, most))


def _join(call: CallView) -> Estimated:
    items = call.size(0)
    size = SizeEstimate(0, 0) if call.element_size is None else items.times(call.element_size)
    if len(call.operands) > 1:
        gaps = SizeEstimate(max(items.least - 1, 0), max(items.most - 1, 0))
        size = size.plus(call.size(1).times(gaps))
    return Estimated(scaled(size.most, TRAVERSAL), size)


def _pattern(text: SizeEstimate, pattern: SizeEstimate) -> int:
    return capped(scaled(text.plus(ONE).most, TRAVERSAL) * scaled(pattern.most, REGEX))


def _find(call: CallView) -> Estimated:
    return Estimated(_pattern(call.size(0), call.size(1)), SizeEstimate(0, call.size(0).most))


def _matches(call: CallView) -> Estimated:
    return Estimated(_pattern(call.size(0), call.size(1)) if call.overload.method else 1)


def _contains(call: CallView) -> Estimated:
    text, part = (scaled(call.size(position).most, TRAVERSAL) for position in (0, 1))
    return Estimated(capped(text * part))


def _contains_network(call: CallView) -> Estimated:
    """A comparison of two addresses, and of their masks; a text has to be read first."""
    cost = scaled(_ADDRESS.plus(_ADDRESS).most, TRAVERSAL)
    if call.overload.function == "containsCIDR":
        cost += scaled(_ADDRESS.most, TRAVERSAL) + 1
    if call.overload.params[1].kind is CelKind.STRING:
        cost = capped(cost + scaled(call.size(1).most, TRAVERSAL))
    return Estimated(cost)


def _validate(call: CallView) -> Estimated:
    return Estimated(scaled(scaled(call.size(1).most, TRAVERSAL), _LONGEST_NAME_PATTERN * REGEX))


def _ip(call: CallView) -> Estimated:
    return Estimated(1) if call.overload.method else _traverse()(call)


def _to_string(call: CallView) -> Estimated:
    if call.overload.params[0].kind is not CelKind.BYTES:
        return Estimated(1)
    size = call.size(0)
    return Estimated(scaled(size.most, TRAVERSAL), SizeEstimate(size.least // 4, size.most))


def _to_bytes(call: CallView) -> Estimated:
    if call.overload.params[0].kind is not CelKind.STRING:
        return Estimated(1)
    size = call.size(0)
    return Estimated(scaled(size.most, TRAVERSAL), SizeEstimate(size.least, size.most * 4 & LARGEST))


def _quote(call: CallView) -> Estimated:
    size = call.size(0)
    return Estimated(scaled(size.most, TRAVERSAL), SizeEstimate(size.least + 2 & LARGEST, size.most * 2 + 2 & LARGEST))


def _in(call: CallView) -> Estimated:
    return Estimated(call.size(1).most if call.overload.params[1].kind is CelKind.LIST else 1)


def _add(call: CallView) -> Estimated:
    kind = call.overload.params[0].kind
    both = call.size(0).plus(call.size(1))
    if kind is CelKind.LIST:
        return Estimated(1, both)
    return Estimated(scaled(both.most, TRAVERSAL), both) if kind in _TEXTUAL else Estimated(1)


def _order(call: CallView) -> Estimated:
    return _compare(call) if call.overload.params[0].kind in _TEXTUAL else Estimated(1)


def _compare(call: CallView) -> Estimated:
    return Estimated(scaled(min(call.size(0).most, call.size(1).most), TRAVERSAL))


def _equal(call: CallView) -> Estimated:
    left, right = (operand.type for operand in call.operands)
    if left.name == right.name and left.kind is right.kind:
        if left.name in _CHEAP_TO_COMPARE:
            return Estimated(1)
        if left.name == types.NAMED_FORMAT.name:
            return Estimated(scaled(_LONGEST_NAMED_FORMAT, TRAVERSAL))
        if left.name == types.URL.name:
            return Estimated(scaled((call.known_sizes[1] or ONE).most, TRAVERSAL))
    return _compare(call)


def _new_list(factor: float, size: SizeEstimate) -> Estimated:
    return Estimated(capped(scaled(size.most, factor) + 1 + LIST_COST), size)


def _literal(node: Expr, otherwise: int) -> int:
    if isinstance(node, LiteralExpr) and type(node.value) is int:
        return max(node.value, 0)
    return otherwise


def _slice(call: CallView) -> Estimated:
    start, end = _literal(call.operands[1], 0), _literal(call.operands[2], call.size(0).most)
    length = end - start & LARGEST
    return _new_list(1, SizeEstimate(length, length))


def _range(call: CallView) -> Estimated:
    length = _literal(call.operands[0], LARGEST)
    return _new_list(1, SizeEstimate(length, length))


def _flatten(call: CallView) -> Estimated:
    depth = _literal(call.operands[1], LARGEST) if len(call.operands) > 1 else 1
    return _new_list(float(depth), call.size(0))


def _sort(position: int) -> Rule:
    def estimate(call: CallView) -> Estimated:
        textual = call.overload.params[position].params[0].kind in _TEXTUAL
        size = call.size(position)
        return _new_list(2 + TRAVERSAL if textual else 2.0, size.times(size))

    return estimate


def _sets(factor: int) -> Rule:
    return lambda call: Estimated(capped(scaled(call.size(0).times(call.size(1)).most, factor) + 1))


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _each_item),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _traverse(keeps_size=True)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "format"), _traverse()),
    **dict.fromkeys(("startsWith", "endsWith"), _traverse(1)),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_network),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _sets(1)),
    "sets.equivalent": _sets(2),
    "ip": _ip,
    "ip.isCanonical": _traverse(times=2),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "matches": _matches,
    "contains": _contains,
    "validate": _validate,
    "string": _to_string,
    "bytes": _to_bytes,
    "strings.quote": _quote,
    "@in": _in,
    "_+_": _add,
    "_==_": _equal,
    "_!=_": _compare,
    "slice": _slice,
    "lists.range": _range,
    "reverse": lambda call: _new_list(1, call.size(0)),
    "flatten": _flatten,
    "distinct": lambda call: _new_list(2, call.size(0).times(call.size(0))),
    "sort": _sort(0),
    "@sortByAssociatedKeys": _sort(1),
}
