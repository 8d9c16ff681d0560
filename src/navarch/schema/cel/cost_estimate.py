"""Estimates the most that a rule can cost, as the API server does before it accepts a CustomResourceDefinition.

The estimate multiplies the cost of one step by the number of its runs, which comes from the schema: a list without
maxItems may fill a whole request. It repeats the quirks of the server's sums, since they decide about the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from navarch.schema.cel.call_estimates import (
    LARGEST,
    LIST_COST,
    MAP_COST,
    MESSAGE_COST,
    ONE,
    UNKNOWN,
    CallView,
    EntrySize,
    Estimated,
    SizeEstimate,
    capped,
    estimate_call,
)
from navarch.schema.cel.expressions import (
    CallExpr,
    ComprehensionExpr,
    Expr,
    IdentExpr,
    ListExpr,
    LiteralExpr,
    MapExpr,
    OptionalMapExpr,
    SelectExpr,
    StructExpr,
)
from navarch.schema.cel.schema_types import MAX_REQUEST_BYTES
from navarch.schema.cel.types import CelKind, CelType, unwrap_optional

RULE_COST_LIMIT = 10_000_000
"""The most that one rule may cost, times the number of places it can apply to."""
CRD_COST_LIMIT = 100_000_000
"""The most that all rules of a CustomResourceDefinition may cost together."""

Path = tuple[str, ...]

_SCALAR = frozenset({CelKind.BOOL, CelKind.DOUBLE, CelKind.DURATION, CelKind.INT, CelKind.TIMESTAMP, CelKind.UINT})
_EMPTY = SizeEstimate(0, 0)
# What the loop of each macro costs besides its body: testing whether to go on, and adding to the result.
_LOOP = {"all": 3, "exists": 4, "existsOne": 2, "filter": 13, "map": 12, "transformList": 12, "sortBy": 12}


def estimate_cost(root: Expr, self_type: CelType | None) -> int:
    """Returns the most that one evaluation of `root` can cost; the type of `self` gives the sizes."""
    return _Coster(self_type).cost(root)


def cardinality_of(unbounded: CelType) -> int:
    """Returns how many values of a type fit into one request: the number of places of a rule under an
    unlimited list.
    """
    return MAX_REQUEST_BYTES // (unbounded.min_size + 1)


@dataclass(frozen=True, slots=True)
class _Local:
    path: Path
    size: SizeEstimate | None
    entry: EntrySize | None = None


class _Coster:
    def __init__(self, self_type: CelType | None) -> None:
        self._root = self_type
        self._sizes: dict[int, SizeEstimate] = {}
        self._entries: dict[int, EntrySize] = {}
        self._paths: dict[int, Path] = {}
        self._locals: dict[str, _Local] = {}

    def cost(self, node: Expr) -> int:
        match node:
            case IdentExpr():
                self._paths[id(node)] = self._locals[node.name].path if node.name in self._locals else (node.name,)
                return 1
            case SelectExpr():
                return self._select(node)
            case CallExpr():
                return self._call(node)
            case ListExpr():
                return self._list(node)
            case MapExpr():
                return self._map(node)
            case StructExpr():
                return capped(sum(self.cost(child) for child in node.children()) + MESSAGE_COST)
            case ComprehensionExpr():
                return self._sort_by(node) if node.macro == "sortBy" else self._comprehension(node)
            case OptionalMapExpr():
                return self._optional_map(node)
        return 0

    def _path(self, node: Expr) -> Path:
        if isinstance(node, IdentExpr) and node.name in self._locals:
            return self._locals[node.name].path
        return self._paths.get(id(node), ())

    def _size(self, node: Expr) -> SizeEstimate | None:
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        found = _written_size(node) or self._declared(self._path(node))
        if found is not None:
            return found
        if _is_scalar(node.type):
            return ONE
        return self._locals[node.name].size if isinstance(node, IdentExpr) and node.name in self._locals else None

    def _size_or_unknown(self, node: Expr) -> SizeEstimate:
        found = self._size(node)
        return UNKNOWN if found is None else found

    def _entry(self, node: Expr) -> EntrySize | None:
        if id(node) in self._entries:
            return self._entries[id(node)]
        return self._locals[node.name].entry if isinstance(node, IdentExpr) and node.name in self._locals else None

    def _declared(self, path: Path) -> SizeEstimate | None:
        """What the schema says; the first step is a variable, and every variable is taken to be `self`."""
        found = self._root if path else None
        for step in path[1:]:
            if found is None:
                return None
            found = _descend(found, step)
        return None if found is None else SizeEstimate(0, found.max_elements)

    def _select(self, node: SelectExpr) -> int:
        if node.named_type is not None:
            self._paths[id(node)] = (node.named_type.name,)
            return 1
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.optional:
            return capped(cost + 1)
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return capped(cost + (node.operand.type.kind in {CelKind.MAP, CelKind.OBJECT}))

    def _call(self, node: CallExpr) -> int:
        operands = node.operands()
        costs = [self.cost(operand) for operand in operands]
        match node.function:
            case "_&&_" | "_||_":
                return capped(sum(costs))
            case "_?_:_":
                return self._conditional(node, costs)
            case "dyn":
                self._copy(node, operands[0])
                return capped(1 + costs[0])
        estimates = [self._estimate(node, position) for position in range(len(node.overloads))]
        if node.function == "_+_":
            self._joined_entries(node, operands[0], operands[1])
        self._set_result_size(node, estimates)
        return capped(sum(costs) + max(estimate.cost for estimate in estimates))

    def _estimate(self, node: CallExpr, position: int) -> Estimated:
        operands = node.operands()
        sizes = [self._size(operand) for operand in operands]
        element = self._element_size(operands[0]) if operands else None
        return estimate_call(CallView(node.overloads[position], operands, sizes, element))

    def _element_size(self, node: Expr) -> SizeEstimate | None:
        if not node.type.params:
            return None
        path = self._path(node)
        return (self._declared((*path, "@items")) if path else None) or UNKNOWN

    def _set_result_size(self, node: CallExpr, estimates: list[Estimated]) -> None:
        size: SizeEstimate | None = None
        for overload, estimate in zip(node.overloads, estimates, strict=True):
            if estimate.size is not None:
                size = estimate.size if size is None else size.union(estimate.size)
            if node.function == "_[_]" and overload.params[0].kind in {CelKind.LIST, CelKind.MAP}:
                container = node.args[0]
                entry = self._entry(container)
                size = None if entry is None else entry.value
                step = "@items" if overload.params[0].kind is CelKind.LIST else "@values"
                self._paths[id(node)] = (*self._path(container), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size

    def _conditional(self, node: CallExpr, costs: list[int]) -> int:
        _, chosen, otherwise = node.args
        self._sizes[id(node)] = self._size_or_unknown(chosen).union(self._size_or_unknown(otherwise))
        self._joined_entries(node, chosen, otherwise)
        return capped(costs[0] + max(costs[1:]))

    def _joined_entries(self, node: Expr, first: Expr, second: Expr) -> None:
        entry = self._entry(first)
        joined = None if entry is None else entry.union(self._entry(second))
        if joined is not None:
            self._entries[id(node)] = joined

    def _copy(self, node: Expr, source: Expr) -> None:
        size, entry = self._size(source), self._entry(source)
        if size is not None:
            self._sizes[id(node)] = size
        if entry is not None:
            self._entries[id(node)] = entry

    def _list(self, node: ListExpr) -> int:
        cost = sum(self.cost(element) for element in node.elements)
        self._entries[id(node)] = EntrySize(is_list=True, key=ONE, value=self._widest(node.elements))
        return capped(cost + LIST_COST)

    def _map(self, node: MapExpr) -> int:
        cost = sum(self.cost(child) for child in node.children())
        keys, values = [entry.key for entry in node.entries], [entry.value for entry in node.entries]
        self._entries[id(node)] = EntrySize(is_list=False, key=self._widest(keys), value=self._widest(values))
        return capped(cost + MAP_COST)

    def _widest(self, nodes: list[Expr]) -> SizeEstimate:
        widest = SizeEstimate(LARGEST if nodes else 0, 0)
        for node in nodes:
            widest = widest.union(self._size_or_unknown(node))
        return widest

    @contextmanager
    def _bound(self, names: dict[str, _Local]) -> Iterator[None]:
        outer = self._locals
        self._locals = {**outer, **names}
        yield
        self._locals = outer

    def _iterated(self, node: ComprehensionExpr) -> dict[str, _Local]:
        """The variables, each with the size of what it stands for."""
        entry, path = self._entry(node.range), self._path(node.range)
        is_list = node.range.type.kind is CelKind.LIST if entry is None else entry.is_list
        key = _Local((*path, "@indices" if is_list else "@keys"), None if entry is None else entry.key)
        value = _Local((*path, "@items" if is_list else "@values"), None if entry is None else entry.value)
        if len(node.variables) == 2:
            return dict(zip(node.variables, (key, value), strict=True))
        return {node.variables[0]: value if is_list else key}

    def _comprehension(self, node: ComprehensionExpr) -> int:
        start = self.cost(node.range)
        with self._bound(self._iterated(node)):
            step, item = self._step(node)
        count = self._size_or_unknown(node.range)
        self._sizes[id(node)] = ONE if node.macro in {"all", "exists", "existsOne"} else count
        if item is not None:
            self._entries[id(node)] = EntrySize(is_list=True, key=ONE, value=item.union(_EMPTY))
        return capped(start + _START.get(node.macro, 0) + _RESULT.get(node.macro, 1) + count.most * step)

    def _step(self, node: ComprehensionExpr) -> tuple[int, SizeEstimate | None]:
        """What one round costs, and the size of the item it adds to a list."""
        condition = 0 if node.condition is None else self.cost(node.condition)
        body = self.cost(node.body)
        if node.macro == "filter":
            variable = IdentExpr(start=0, at=0, name=node.variables[0], type=node.type.params[0])
            return capped(body + _LOOP["filter"]), self._size_or_unknown(variable)
        if node.macro in {"map", "transformList"}:
            return capped(condition + body + _LOOP["map"]), self._size_or_unknown(node.body)
        inserted = {"transformMap": 3, "transformMapEntry": 2}
        return capped(condition + body + (inserted.get(node.macro) or _LOOP[node.macro])), None

    def _sort_by(self, node: ComprehensionExpr) -> int:
        """The list is bound to a name, mapped to its keys, and sorted by them."""
        start = self.cost(node.range) + LIST_COST
        with self._bound(self._iterated(node)):
            step = capped(self.cost(node.body) + _LOOP["sortBy"])
        count = self._size_or_unknown(node.range)
        keys = capped(1 + LIST_COST + 1 + count.most * step)
        views = [CallView(overload, (node.range, node.body), (count, count), None) for overload in node.overloads]
        estimates = [estimate_call(view) for view in views]
        self._sizes[id(node)] = count.times(count)
        return capped(start + 1 + keys + max(estimate.cost for estimate in estimates))

    def _optional_map(self, node: OptionalMapExpr) -> int:
        target = self.cost(node.target)
        inner = unwrap_optional(node.target.type)[0]
        with self._bound({node.variable: _Local((), ONE if _is_scalar(inner) else None)}):
            body = self.cost(node.body)
        return capped(target + 1 + LIST_COST + target + 1 + body + (not node.flat))


_START = {
    "map": LIST_COST,
    "filter": LIST_COST,
    "transformList": LIST_COST,
    "transformMap": MAP_COST,
    "transformMapEntry": MAP_COST,
}
_RESULT = {"existsOne": 2}


def _written_size(node: Expr) -> SizeEstimate | None:
    """The size of what is written out in the rule."""
    match node:
        case LiteralExpr(value=str() | bytes() as text):
            return SizeEstimate(len(text), len(text))
        case LiteralExpr():
            return ONE
        case ListExpr(elements=items) | MapExpr(entries=items):
            return SizeEstimate(len(items), len(items))
    return None


def _is_scalar(given: CelType) -> bool:
    inner, optional = unwrap_optional(given)
    return _is_scalar(inner) if optional else given.kind in _SCALAR


def _descend(container: CelType, step: str) -> CelType | None:
    if step in {"@items", "@values"}:
        return container.params[-1] if container.kind in {CelKind.LIST, CelKind.MAP} else None
    if step == "@keys":
        return container.params[0] if container.kind is CelKind.MAP else None
    return (container.fields or {}).get(step)
