"""The cost of a call at run time: a constant of the compiled expression, or a function of the values.

The costs are those of the API server: an expression that a real cluster stops is stopped here. Some calls cost one unit
there although their time grows with their input; a budget would not bound a loop over such calls. These cost more here,
by the size of their input or result. Costs are charged before the call, so that no result is built that exceeds the
budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from navarch.schema.cel.call_estimates import LIST_COST
from navarch.schema.cel.containers import MOST_NODES, SetList, nodes_of
from navarch.schema.cel.cost_tracker import CALL_COST_LIMIT
from navarch.schema.cel.library.formats import NamedFormat
from navarch.schema.cel.library.network import Cidr, Ip
from navarch.schema.cel.library.regex import FINDING, match_cost
from navarch.schema.cel.signatures import Overload
from navarch.schema.cel.types import CelKind, CelType
from navarch.schema.cel.values import Optional

Price: TypeAlias = Callable[..., int]
"""Returns the cost of a call with these values."""


_SIZED = (str, bytes, list, dict)
_NESTED = (list, dict)
_ATOMS = frozenset({int, bool, float, type(None)})
_TEXTUAL = frozenset({CelKind.STRING, CelKind.BYTES})
_SCALAR = frozenset(
    {
        CelKind.BOOL,
        CelKind.INT,
        CelKind.UINT,
        CelKind.DOUBLE,
        CelKind.TIMESTAMP,
        CelKind.DURATION,
        CelKind.NULL,
        CelKind.TYPE,
    }
)
_COST_OF_CHECK: Final = 350_000
_PART: Final = 5
_PRECISION: Final = 100
_PARSING: Final = 20
"""Addresses, URLs, versions and quantities are objects here that are expensive to make."""
_BEYOND: Final = CALL_COST_LIMIT * 100


def call_cost(overload: Overload, given: Sequence[CelType]) -> int | Price:
    """Returns the cost of a call whose arguments have these types, without the cost of the arguments."""
    found = _PRICES.get(overload.function, 1)
    return found(overload, given) if callable(found) else found


def _tenth(size: int) -> int:
    """What going through so many characters costs, rounded up."""
    return (size + 9) // 10


def _size(value: object) -> int:
    if isinstance(value, _SIZED):
        return len(value)
    if isinstance(value, Ip):
        return len(value.address.packed)
    return (value.interface.network.prefixlen + 7) // 8 if isinstance(value, Cidr) else 1


def _writing_cost(value: object) -> int:
    """What it costs to write a value out: some for each part of it, and a tenth of its text."""
    cost = 0
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending += each.keys()
            pending += each.values()
        elif isinstance(each, list):
            pending += each
        cost += _PART + (len(each) // 10 if isinstance(each, str | bytes) else 0)
        if len(pending) > MOST_NODES or cost > CALL_COST_LIMIT:
            return _BEYOND
    return cost


_Rule: TypeAlias = Callable[[Overload, Sequence[CelType]], "int | Price"]


def _always(price: Price) -> _Rule:
    return lambda _overload, _given: price


def _traverse(position: int = 0, times: int = 1) -> _Rule:
    """Going through one operand's text."""
    return _always(lambda *values: (_size(values[position]) * times + 9) // 10)


def _parse(times: int = 1) -> _Rule:
    """Kubernetes: going through the text; here also making the object."""
    return _always(lambda text, *_: _PARSING + (_size(text) * times + 9) // 10)


def _each_item(items: object, *_: object) -> int:
    """Kubernetes: one for each number, and nothing for short strings; here one for each item at least."""
    if isinstance(items, str | bytes):
        return len(items.encode() if isinstance(items, str) else items) // 10
    if not isinstance(items, list):
        return 1
    return sum(len(item) // 10 if isinstance(item, str | bytes) else 1 for item in items) + nodes_of(items)


def _replace(text: str, old: str, new: str, limit: int = -1) -> int:
    """Kubernetes: twice the text; here also what is built."""
    count = text.count(old)
    if limit >= 0:
        count = min(count, limit)
    return _tenth(2 * len(text)) + max(0, count * (len(new) - len(old))) // 10


def _join(items: list[object], separator: str = "") -> int:
    """Kubernetes: twice the result; here also the items, which may be empty."""
    size = sum(_size(item) for item in items) + len(separator) * max(0, len(items) - 1)
    return _tenth(2 * size) + len(items)


def _format(template: str, values: list[object]) -> int:
    """Kubernetes: the template; here also the values, of which each is written once."""
    written = _writing_cost(values) - _PART if values else 0
    return _tenth(len(template)) + written + _PRECISION * template.count("%.")


def _ip(overload: Overload, _: Sequence[CelType]) -> int | Price:
    return 1 if overload.method else lambda text: _PARSING + _tenth(_size(text))


def _text_size(text: object, *_: object) -> int:
    return _tenth(_size(text))


def _contains_network(overload: Overload, _: Sequence[CelType]) -> Price:
    is_network, is_text = overload.function == "containsCIDR", overload.params[1].kind is CelKind.STRING

    def price(cidr: object, other: object) -> int:
        size = _size(cidr)
        cost = _tenth(2 * size) + (_tenth(size) + 1 if is_network else 0)
        return cost + (_PARSING + _tenth(_size(other)) if is_text else _PARSING)

    return price


def _validate(named: NamedFormat, text: str) -> int:
    return _tenth(len(text) + 1) * ((named.longest_pattern + 3) // 4)


def _convert(overload: Overload, _: Sequence[CelType]) -> int | Price:
    """Kubernetes: one, but for the conversions between strings and bytes; here also a long text that is read."""
    source, target = overload.params[0].kind, overload.result.kind
    if {source, target} == _TEXTUAL:
        return _text_size
    return (lambda value: 1 + _size(value) // 100) if source in _TEXTUAL and target is not source else 1


def _in(wanted: object, container: object) -> int:
    return _in_list(wanted, container) if isinstance(container, list) else 1


def _in_list(wanted: object, container: object) -> int:
    """Kubernetes: one for each item; here also what is nested in them, if they are compared with something nested."""
    return _size(container) + (2 * nodes_of(container) if isinstance(wanted, _NESTED) else 0)


def _add(overload: Overload, _: Sequence[CelType]) -> int | Price:
    """Kubernetes: one for lists; here also the items, which are copied."""
    kind = overload.params[0].kind
    if kind is CelKind.LIST:
        return _add_lists
    return (lambda left, right: _tenth(len(left) + len(right))) if kind in _TEXTUAL else 1


def _add_lists(left: list[object], right: list[object]) -> int:
    compared = len(left) * nodes_of(right) if isinstance(left, SetList) else 0
    return 1 + (len(left) + len(right) + compared) // 10


def _order(overload: Overload, _: Sequence[CelType]) -> int | Price:
    return _smaller if overload.params[0].kind in _TEXTUAL else 1


def _smaller(left: object, right: object) -> int:
    return _tenth(min(_size(left), _size(right)))


def _equal(overload: Overload, given: Sequence[CelType]) -> int | Price:
    """Kubernetes: a tenth of the smaller one's size; here also what is nested in it."""
    if any(each.kind in _SCALAR for each in given):
        return 1
    return _equal_values if overload.function == "_==_" else _unequal_values


def _equal_values(left: object, right: object) -> int:
    if type(left) in _ATOMS or type(right) in _ATOMS:
        return 1
    return 1 if isinstance(left, Ip | Cidr) else _unequal_values(left, right)


def _unequal_values(left: object, right: object) -> int:
    if not isinstance(left, _NESTED):
        return _smaller(left, right) if not isinstance(left, Optional) else 1 + 2 * nodes_of(left)
    if not isinstance(right, _NESTED) or len(left) != len(right):
        return _smaller(left, right)
    compared = len(left) * nodes_of(right) if isinstance(left, SetList) else 0
    return _smaller(left, right) + 2 * (nodes_of(left) + compared)


def _new_list(items: object, *_: object) -> int:
    return 1 + LIST_COST + _size(items)


def _slice(items: list[object], start: int, end: int) -> int:
    return 1 + LIST_COST + max(0, min(end, len(items)) - max(start, 0))


def _range(count: int) -> int:
    return 1 + LIST_COST + max(0, count)


def _flatten(items: list[object], depth: int = 1) -> int:
    """Kubernetes: the size of the list times the depth; here also that of the lists in it."""
    return 1 + LIST_COST + len(items) * max(0, depth) + nodes_of(items)


def _compare_items(position: int, *, deep: bool) -> _Rule:
    """Each item with each other one."""

    def price(*values: list[object]) -> int:
        items = values[position]
        textual = bool(items) and isinstance(items[0], str | bytes)
        within = len(items) * (nodes_of(items) - len(items)) if deep else 0
        return 1 + LIST_COST + int(len(items) ** 2 * (2.1 if textual else 2.0)) + within

    return _always(price)


def _sets(factor: int) -> _Rule:
    def price(left: list[object], right: list[object]) -> int:
        within = len(left) * (nodes_of(right) - len(right)) + len(right) * (nodes_of(left) - len(left))
        return 1 + len(left) * len(right) * factor + within

    return _always(price)


_PRICES: Mapping[str, int | _Rule] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _always(_each_item)),
    **dict.fromkeys(
        ("lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "strings.quote"), _traverse()
    ),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "url"), _parse()),
    **dict.fromkeys(("add", "sub", "sign", "asInteger", "isInteger", "asApproximateFloat"), _PARSING),
    **dict.fromkeys(("isGreaterThan", "isLessThan", "compareTo", "isGlobalUnicast", "masked"), _PARSING),
    **dict.fromkeys(("startsWith", "endsWith"), _traverse()),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_network),
    **dict.fromkeys(("find", "matches"), _always(match_cost)),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("_==_", "_!=_"), _equal),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _sets(1)),
    **dict.fromkeys(("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"), _convert),
    **dict.fromkeys(("optional.unwrap", "unwrapOpt"), _always(lambda items: 1 + len(items))),
    "isURL": _parse(),
    "sets.equivalent": _sets(2),
    "check": _COST_OF_CHECK,
    "ip": _ip,
    "ip.isCanonical": _parse(times=2),
    "findAll": _always(lambda text, *rest: match_cost(text, *rest) + FINDING * len(text)),
    "replace": _always(_replace),
    "split": _traverse(times=2),
    "join": _always(_join),
    "format": _always(_format),
    "contains": _always(lambda text, part: _tenth(len(text)) * _tenth(len(part))),
    "validate": _always(_validate),
    "getQuery": _always(lambda url: 1 + len(url.query) // 100),
    "getEscapedPath": _always(lambda url: 1 + len(url.path) // 100),
    "@in": _always(_in),
    "_+_": _add,
    "slice": _always(_slice),
    "lists.range": _always(_range),
    "reverse": _always(_new_list),
    "flatten": _always(_flatten),
    "distinct": _compare_items(0, deep=True),
    "sort": _compare_items(0, deep=False),
    "@sortByAssociatedKeys": _compare_items(1, deep=False),
}
