"""The type checker: gives every expression its type, and every call its possible overloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from navarch.schema.cel import signatures, types
from navarch.schema.cel.errors import Faults, Said
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
    walk,
)
from navarch.schema.cel.lexer import RESERVED
from navarch.schema.cel.library import FUNCTIONS, PATCH_FUNCTIONS
from navarch.schema.cel.signatures import Overload
from navarch.schema.cel.types import CelKind, CelType
from navarch.schema.cel.unification import Substitution, most_general


def check(root: Expr, source: str, variables: Mapping[str, CelType], *, builds: bool = False) -> frozenset[str]:
    """Sets the types of `root` and returns the names of `variables` that it uses. Raises `CelError`."""
    checker = _Checker(source, variables, {**FUNCTIONS, **PATCH_FUNCTIONS} if builds else FUNCTIONS)
    checker.check(root)
    checker.faults.check()
    for node in walk(root):
        node.type = checker.types.resolve(node.type, unbound_is_dyn=True)
    return frozenset(checker.used)


_UNKNOWN = frozenset({CelKind.DYN, CelKind.PARAMETER, CelKind.ERROR})


def _undeclared(node: Expr, name: str) -> Said:
    return node.said(f"undeclared reference to '{name}' (in container '')")


def _no_matching(function: str, given: list[CelType], *, method: bool) -> str:
    shown = [*map(types.told, given)]
    target = f"{shown.pop(0)}." if method else ""
    return f"found no matching overload for '{function}' applied to '{target}({', '.join(shown)})'"


class _Checker:
    def __init__(
        self, source: str, variables: Mapping[str, CelType], functions: Mapping[str, tuple[Overload, ...]]
    ) -> None:
        self.types = Substitution()
        self.used: set[str] = set()
        self.faults = Faults(source)
        self._source = source
        self._variables = variables
        self._functions = functions
        self._local: dict[str, CelType] = {}
        self._resolved: dict[tuple[object, ...], tuple[tuple[Overload, ...], CelType]] = {}
        """What was found for calls with operands of these types, none of which has parameters."""

    def check(self, node: Expr) -> CelType:
        match node:
            case LiteralExpr():
                pass
            case IdentExpr():
                node.type = self._ident(node)
            case SelectExpr():
                node.type = self._select(node)
            case CallExpr():
                node.type = self._call(node)
            case ListExpr():
                node.type = self._list(node)
            case MapExpr():
                node.type = self._map(node)
            case StructExpr():
                node.type = self._message(node)
            case ComprehensionExpr():
                node.type = self._comprehension(node)
            case OptionalMapExpr():
                node.type = self._optional_map(node)
        return node.type

    def _wrong(self, at: int, problem: str, said: Said, *, expected: str = "", remedy: str = "") -> CelType:
        """Notes a fault; what is wrong has the type that this returns, with which nothing else is."""
        self.faults.add(at, problem, said, expected=expected, remedy=remedy)
        return types.ERROR

    @contextmanager
    def _bound(self, names: Mapping[str, CelType]) -> Iterator[None]:
        outer = self._local
        self._local = {**outer, **names}
        yield
        self._local = outer

    def _require_bool(self, node: Expr, role: str, instead: Said | None = None) -> None:
        """Of a node that was checked."""
        if not self.types.fits(node.type, types.BOOL):
            found = self.types.resolve(node.type, unbound_is_dyn=True)
            said = instead or node.said(f"expected type 'bool' but found '{types.told(found)}'")
            self._wrong(node.at, f"{role} is of type {found}", said, expected="bool")

    def _ident(self, node: IdentExpr) -> CelType:
        if node.name in self._local:
            return self._local[node.name]
        if node.name in self._variables:
            self.used.add(node.name)
            return self._variables[node.name]
        node.named_type = types.NAMED_TYPES.get(node.name)
        if node.named_type is not None:
            return types.type_of(node.named_type)
        remedy = "" if self.faults else self._remedy_for(node.name)
        return self._wrong(node.at, f"nothing is called {node.name!r}", _undeclared(node, node.name), remedy=remedy)

    def _remedy_for(self, name: str) -> str:
        if name in FUNCTIONS:
            return f"it is a function: write {name}(…)"
        return signatures.for_name(name, {**self._variables, **self._local}, self._variables.get("self"))

    def _select(self, node: SelectExpr) -> CelType:
        name = self._qualified_name(node)
        if name in types.NAMED_TYPES:
            node.named_type = types.NAMED_TYPES[name]
            return types.type_of(node.named_type)
        operand, was_optional = types.unwrap_optional(self.types.resolve(self.check(node.operand)))
        found = self._field(node, operand)
        if node.test:
            return types.BOOL
        return types.optional_of(found) if was_optional or node.optional else found

    def _field(self, node: SelectExpr, operand: CelType) -> CelType:
        if operand.kind is CelKind.MAP:
            return operand.params[1]
        if operand.kind is CelKind.OBJECT:
            fields = operand.fields or {}
            if node.field in RESERVED and f"__{node.field}__" in fields:
                node.field = f"__{node.field}__"
            if node.field not in fields:
                where = self._source[node.operand.start : node.at].rstrip(" .?\n\t")
                problem, said = f"{where} has no field {node.field!r}", node.said(f"undefined field '{node.field}'")
                return self._wrong(
                    node.at, problem, said, remedy="" if self.faults else signatures.for_field(node.field, [*fields])
                )
            return fields[node.field]
        if operand.kind not in _UNKNOWN:
            said = node.said(f"type '{types.told(operand)}' does not support field selection")
            problem = f"a value of type {operand} has no fields"
            self._wrong(node.at, problem, said, expected="an object or a map")
        self.types.fits(types.DYN, operand)
        return types.DYN

    def _qualified_name(self, node: Expr) -> str:
        """`a.b.c` if the node is such a chain and `a` is no variable, else nothing."""
        match node:
            case IdentExpr(name=name) if name not in self._local and name not in self._variables:
                return name
            case SelectExpr(operand=operand, field=field, optional=False, test=False):
                prefix = self._qualified_name(operand)
                return f"{prefix}.{field}" if prefix else ""
        return ""

    def _call(self, node: CallExpr) -> CelType:
        if node.target is not None:
            prefix = self._qualified_name(node.target)
            if f"{prefix}.{node.function}" in self._functions:
                node.function, node.target = f"{prefix}.{node.function}", None
        if node.function in {"_&&_", "_||_"}:
            for side in node.args:
                self.check(side)
                self._require_bool(side, f"a term of `{signatures.display(node.function)}`")
            return types.BOOL
        given = list(map(self.check, node.operands()))
        if node.function not in self._functions:
            problem, said = f"no function is called {node.function!r}", _undeclared(node, node.function)
            return self._wrong(
                node.at, problem, said, remedy="" if self.faults else signatures.closest(node.function, self._functions)
            )
        overloads, method = self._functions[node.function], node.target is not None
        key = (node.function, method, *(each.kind for each in given))
        if (known := self._resolved.get(key)) is None:
            known = self._resolve(node, overloads, given, method=method)
            if known[0] and _CONCRETE.issuperset(key[2:]):
                self._resolved[key] = known
        node.overloads, result = known
        return result

    def _resolve(
        self, node: Expr, overloads: tuple[Overload, ...], given: list[CelType], *, method: bool
    ) -> tuple[tuple[Overload, ...], CelType]:
        """The overloads that take what is given, and what they give: dyn if they do not agree."""
        style = [overload for overload in overloads if overload.method == method]
        fitting: list[Overload] = []
        result: CelType | None = None
        for overload in style:
            if len(given) != len(overload.params) or any(map(_differ, given, overload.params)):
                continue
            renamed = {name: self.types.fresh() for name in overload.type_parameters}
            if not self.types.all_fit(given, [_rename(param, renamed) for param in overload.params]):
                continue
            fitting.append(overload)
            gives = self.types.resolve(_rename(overload.result, renamed))
            result = gives if result is None or result == gives else types.DYN
        if result is None:
            result = self._no_overload(node, overloads[0].function, style, given, method=method)
        return tuple(fitting), result

    def _no_overload(
        self, node: Expr, function: str, style: list[Overload], given: list[CelType], *, method: bool
    ) -> CelType:
        found = [self.types.resolve(each, unbound_is_dyn=True) for each in given]
        listed = ", ".join(map(str, found))
        if signatures.is_operator(function):
            problem = f"`{signatures.display(function)}` does not take ({listed})"
        elif method:
            problem = f"{found[0]} has no method {function}({', '.join(map(str, found[1:]))})"
        else:
            problem = f"{function}() does not take ({listed})"
        remedy = "" if self.faults else signatures.for_call(function, found, style, method)
        said = node.said(_no_matching(function, found, method=method))
        return self._wrong(node.at, problem, said, expected=signatures.expected_by(style), remedy=remedy)

    def _list(self, node: ListExpr) -> CelType:
        joined: CelType | None = None
        for position, element in enumerate(node.elements):
            joined = self._join(joined, self._item(element, position in node.optional))
        return types.list_of(joined or self.types.fresh())

    def _map(self, node: MapExpr) -> CelType:
        key: CelType | None = None
        value: CelType | None = None
        for entry in node.entries:
            key = self._join(key, self.check(entry.key))
            value = self._join(value, self._item(entry.value, entry.optional))
        return types.map_of(key or self.types.fresh(), value or self.types.fresh())

    def _message(self, node: StructExpr) -> CelType:
        if node.name not in {"JSONPatch", "Object"} and not node.name.startswith("Object."):
            problem, expected = f"no type is called {node.name!r}", "Object, Object.<field> or JSONPatch"
            self._wrong(node.start, problem, _undeclared(node, node.name), expected=expected)
        for field in node.fields:
            self._item(field.value, field.optional)
        return types.opaque(node.name)

    def _item(self, node: Expr, optional: bool) -> CelType:
        found = self.check(node)
        if not optional:
            return found
        inner, wrapped = types.unwrap_optional(self.types.resolve(found))
        if not wrapped and inner.kind not in {CelKind.DYN, CelKind.ERROR}:
            shown = types.told(inner)
            said = node.said(f"expected type 'optional_type({shown})' but found '{shown}'")
            self._wrong(node.at, f"an optional item is of type {inner}", said, expected=f"optional_type({inner})")
        return inner

    def _join(self, joined: CelType | None, item: CelType) -> CelType:
        if joined is None or joined is item:
            return item
        return most_general(joined, item) if self.types.fits(joined, item) else types.DYN

    def _comprehension(self, node: ComprehensionExpr) -> CelType:
        ranged = self.types.resolve(self.check(node.range))
        if node.macro == "sortBy" and ranged.kind is CelKind.MAP:
            said = node.said(_no_matching("@sortByAssociatedKeys", [ranged, types.list_of(types.DYN)], method=True))
            return self._wrong(node.at, "sortBy() does not take a map", said, expected="a list")
        kinds = self._iterated(node, ranged)
        with self._bound(dict(zip(node.variables, kinds, strict=True))):
            if node.condition is not None:
                self.check(node.condition)
            outcome = self._outcome(node, ranged, kinds[0], self.check(node.body))
            if node.condition is not None:
                self._decides(node, node.condition, f"the filter of {node.macro}()", outcome)
            if node.macro in {"all", "exists"}:
                self._require_bool(node.body, f"the condition of {node.macro}()")
            elif node.macro in {"existsOne", "filter"}:
                counted = types.INT if node.macro == "existsOne" else outcome
                self._decides(node, node.body, f"the condition of {node.macro}()", counted)
            return outcome

    def _decides(self, node: ComprehensionExpr, condition: Expr, role: str, outcome: CelType) -> None:
        """A condition that chooses between the outcome so far and the one with this item."""
        found = self.types.resolve(condition.type, unbound_is_dyn=True)
        self._require_bool(condition, role, node.said(_no_matching("_?_:_", [found, outcome, outcome], method=False)))

    def _iterated(self, node: ComprehensionExpr, ranged: CelType) -> list[CelType]:
        """The types of the variables."""
        two = len(node.variables) == 2
        if ranged.kind is CelKind.LIST:
            return [types.INT, ranged.params[0]] if two else [ranged.params[0]]
        if ranged.kind is CelKind.MAP:
            return list(ranged.params) if two else [ranged.params[0]]
        if ranged.kind not in _UNKNOWN:
            shown = types.told(self.types.resolve(ranged, unbound_is_dyn=True))
            said = f"expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
            problem = f"{node.macro}() does not go over a value of type {ranged}"
            self._wrong(node.at, problem, node.range.said(said), expected="a list or a map")
        self.types.fits(types.DYN, ranged)
        return [types.DYN] * len(node.variables)

    def _outcome(self, node: ComprehensionExpr, ranged: CelType, first: CelType, body: CelType) -> CelType:
        match node.macro:
            case "filter":
                return types.list_of(first)
            case "map" | "transformList":
                return types.list_of(body)
            case "transformMap":
                return types.map_of(first, body)
            case "transformMapEntry":
                entry = types.map_of(self.types.fresh(), self.types.fresh())
                if not self.types.fits(body, entry):
                    said = node.said(_no_matching("cel.@mapInsert", [entry, body], method=False))
                    problem, expected = f"the entry is of type {body}", "a map literal: {key: value}"
                    self._wrong(node.body.at, problem, said, expected=expected)
                return self.types.resolve(entry)
            case "sortBy":
                sort = FUNCTIONS["@sortByAssociatedKeys"]
                node.overloads, result = self._resolve(node, sort, [ranged, types.list_of(body)], method=True)
                return result
        return types.BOOL

    def _optional_map(self, node: OptionalMapExpr) -> CelType:
        inner = self.types.fresh()
        if not self.types.fits(self.check(node.target), types.optional_of(inner)):
            macro = "optFlatMap" if node.flat else "optMap"
            found = self.types.resolve(node.target.type, unbound_is_dyn=True)
            problem = f"{macro}() does not take a value of type {found}"
            self._wrong(
                node.at, problem, node.said(_no_matching("hasValue", [found], method=True)), expected="an optional"
            )
            said = node.said(_no_matching("value", [found], method=True))
            return self._wrong(node.at, problem, said, expected="an optional")
        with self._bound({node.variable: self.types.resolve(inner)}):
            body = self.check(node.body)
        if not node.flat:
            return types.optional_of(body)
        if not self.types.fits(body, types.optional_of(self.types.fresh())):
            problem = f"the body of optFlatMap() is of type {body}"
            outcome = [types.BOOL, body, types.optional_of(types.DYN)]
            said = node.said(_no_matching("_?_:_", outcome, method=False))
            return self._wrong(node.body.at, problem, said, expected="an optional")
        return self.types.resolve(body)


_CONCRETE = frozenset({CelKind.BOOL, CelKind.INT, CelKind.UINT, CelKind.DOUBLE, CelKind.STRING, CelKind.BYTES})


def _differ(given: CelType, wanted: CelType) -> bool:
    """Whether one look tells that a type is not the one that is wanted."""
    return given.kind is not wanted.kind and given.kind in _CONCRETE and wanted.kind in _CONCRETE


def _rename(generic: CelType, names: Mapping[str, CelType]) -> CelType:
    if generic.kind is CelKind.PARAMETER:
        return names[generic.name]
    if not generic.params:
        return generic
    return CelType(generic.kind, generic.name, tuple(_rename(param, names) for param in generic.params))
