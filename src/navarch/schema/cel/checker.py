"""Gives every node of a tree its type, and every call the overloads that may be meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from navarch.schema.cel import remedies, types
from navarch.schema.cel.errors import error_at
from navarch.schema.cel.lexer import RESERVED
from navarch.schema.cel.library import FUNCTIONS, PATCH_FUNCTIONS
from navarch.schema.cel.nodes import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Node,
    OptionalMap,
    Select,
    walk,
)
from navarch.schema.cel.signatures import Overload
from navarch.schema.cel.types import CelType, Kind
from navarch.schema.cel.unify import Substitution, most_general


def check(root: Node, source: str, variables: Mapping[str, CelType], *, builds: bool = False) -> frozenset[str]:
    """Fill in the types of `root`; returns which of `variables` it uses. Raises `CelError`."""
    checker = _Checker(source, variables, {**FUNCTIONS, **PATCH_FUNCTIONS} if builds else FUNCTIONS)
    checker.check(root)
    for node in walk(root):
        node.type = checker.types.resolve(node.type, unbound_is_dyn=True)
    return frozenset(checker.used)


class _Checker:
    def __init__(
        self, source: str, variables: Mapping[str, CelType], functions: Mapping[str, tuple[Overload, ...]]
    ) -> None:
        self.types = Substitution()
        self.used: set[str] = set()
        self._source = source
        self._variables = variables
        self._functions = functions
        self._local: dict[str, CelType] = {}

    def check(self, node: Node) -> CelType:
        match node:
            case Literal():
                pass
            case Ident():
                node.type = self._ident(node)
            case Select():
                node.type = self._select(node)
            case Call():
                node.type = self._call(node)
            case ListLiteral():
                node.type = self._list(node)
            case MapLiteral():
                node.type = self._map(node)
            case MessageLiteral():
                node.type = self._message(node)
            case Comprehension():
                node.type = self._comprehension(node)
            case OptionalMap():
                node.type = self._optional_map(node)
        return node.type

    def _fail(self, at: int, problem: str, *, expected: str = "", remedy: str = "") -> NoReturn:
        raise error_at(self._source, at, problem, expected=expected, remedy=remedy)

    @contextmanager
    def _bound(self, names: Mapping[str, CelType]) -> Iterator[None]:
        outer = self._local
        self._local = {**outer, **names}
        yield
        self._local = outer

    def _require(self, node: Node, wanted: CelType, role: str) -> None:
        if not self.types.fits(self.check(node), wanted):
            found = self.types.resolve(node.type, unbound_is_dyn=True)
            self._fail(node.at, f"{role} is of type {found}", expected=str(wanted))

    def _ident(self, node: Ident) -> CelType:
        if node.name in self._local:
            return self._local[node.name]
        if node.name in self._variables:
            self.used.add(node.name)
            return self._variables[node.name]
        node.named_type = types.NAMED_TYPES.get(node.name)
        if node.named_type is not None:
            return types.type_of(node.named_type)
        scope = {**self._variables, **self._local}
        remedy = remedies.for_name(node.name, scope, self._variables.get("self"))
        if node.name in FUNCTIONS:
            remedy = f"it is a function: write {node.name}(…)"
        raise error_at(self._source, node.at, f"nothing is called {node.name!r}", remedy=remedy)

    def _select(self, node: Select) -> CelType:
        name = self._qualified_name(node)
        if name in types.NAMED_TYPES:
            node.named_type = types.NAMED_TYPES[name]
            return types.type_of(node.named_type)
        operand, was_optional = types.unwrap_optional(self.types.resolve(self.check(node.operand)))
        found = self._field(node, operand)
        if node.test:
            return types.BOOL
        return types.optional_of(found) if was_optional or node.optional else found

    def _field(self, node: Select, operand: CelType) -> CelType:
        if operand.kind is Kind.MAP:
            return operand.params[1]
        if operand.kind is Kind.OBJECT:
            fields = operand.fields or {}
            if node.field in RESERVED and f"__{node.field}__" in fields:
                node.field = f"__{node.field}__"
            if node.field not in fields:
                where = self._source[node.operand.start : node.at].rstrip(" .?\n\t")
                self._fail(
                    node.at, f"{where} has no field {node.field!r}", remedy=remedies.for_field(node.field, [*fields])
                )
            return fields[node.field]
        if operand.kind not in {Kind.DYN, Kind.PARAMETER}:
            self._fail(node.at, f"a value of type {operand} has no fields", expected="an object or a map")
        self.types.fits(types.DYN, operand)
        return types.DYN

    def _qualified_name(self, node: Node) -> str:
        """`a.b.c` if the node is such a chain and `a` is no variable, else nothing."""
        match node:
            case Ident(name=name) if name not in self._local and name not in self._variables:
                return name
            case Select(operand=operand, field=field, optional=False, test=False):
                prefix = self._qualified_name(operand)
                return f"{prefix}.{field}" if prefix else ""
        return ""

    def _call(self, node: Call) -> CelType:
        if node.target is not None:
            prefix = self._qualified_name(node.target)
            if f"{prefix}.{node.function}" in self._functions:
                node.function, node.target = f"{prefix}.{node.function}", None
        if node.function in {"_&&_", "_||_"}:
            for side in node.args:
                self._require(side, types.BOOL, f"a term of `{remedies.display(node.function)}`")
            return types.BOOL
        given = list(map(self.check, node.operands()))
        if node.function not in self._functions:
            self._fail(
                node.at,
                f"no function is called {node.function!r}",
                remedy=remedies.closest(node.function, self._functions),
            )
        node.overloads, result = self._resolve(node, self._functions[node.function], given, node.target is not None)
        return result

    def _resolve(
        self, node: Node, overloads: tuple[Overload, ...], given: list[CelType], method: bool
    ) -> tuple[tuple[Overload, ...], CelType]:
        """The overloads that take what is given, and what they give: dyn if they do not agree."""
        style = [overload for overload in overloads if overload.method == method]
        fitting: list[Overload] = []
        result: CelType | None = None
        for overload in style:
            renamed = {name: self.types.fresh() for name in overload.type_parameters}
            if not self.types.all_fit(given, [_rename(param, renamed) for param in overload.params]):
                continue
            fitting.append(overload)
            gives = self.types.resolve(_rename(overload.result, renamed))
            result = gives if result is None or result == gives else types.DYN
        if result is None:
            self._no_overload(node, overloads[0].function, style, given, method)
        return tuple(fitting), result

    def _no_overload(
        self, node: Node, function: str, style: list[Overload], given: list[CelType], method: bool
    ) -> NoReturn:
        found = [self.types.resolve(each, unbound_is_dyn=True) for each in given]
        listed = ", ".join(map(str, found))
        if remedies.is_operator(function):
            problem = f"`{remedies.display(function)}` does not take ({listed})"
        elif method:
            problem = f"{found[0]} has no method {function}({', '.join(map(str, found[1:]))})"
        else:
            problem = f"{function}() does not take ({listed})"
        remedy = remedies.for_call(function, found, style, method)
        self._fail(node.at, problem, expected=remedies.expected_by(style), remedy=remedy)

    def _list(self, node: ListLiteral) -> CelType:
        joined: CelType | None = None
        for position, element in enumerate(node.elements):
            joined = self._join(joined, self._item(element, position in node.optional))
        return types.list_of(joined or self.types.fresh())

    def _map(self, node: MapLiteral) -> CelType:
        key: CelType | None = None
        value: CelType | None = None
        for entry in node.entries:
            key = self._join(key, self.check(entry.key))
            value = self._join(value, self._item(entry.value, entry.optional))
        return types.map_of(key or self.types.fresh(), value or self.types.fresh())

    def _message(self, node: MessageLiteral) -> CelType:
        if node.name not in {"JSONPatch", "Object"} and not node.name.startswith("Object."):
            self._fail(node.start, f"no type is called {node.name!r}", expected="Object, Object.<field> or JSONPatch")
        for field in node.fields:
            self._item(field.value, field.optional)
        return types.opaque(node.name)

    def _item(self, node: Node, optional: bool) -> CelType:
        found = self.check(node)
        if not optional:
            return found
        inner, wrapped = types.unwrap_optional(self.types.resolve(found))
        if not wrapped and inner.kind is not Kind.DYN:
            self._fail(node.at, f"an optional item is of type {inner}", expected=f"optional_type({inner})")
        return inner

    def _join(self, joined: CelType | None, item: CelType) -> CelType:
        if joined is None:
            return item
        return most_general(joined, item) if self.types.fits(joined, item) else types.DYN

    def _comprehension(self, node: Comprehension) -> CelType:
        ranged = self.types.resolve(self.check(node.range))
        if node.macro == "sortBy" and ranged.kind is Kind.MAP:
            self._fail(node.at, "sortBy() does not take a map", expected="a list")
        kinds = self._iterated(node, ranged)
        with self._bound(dict(zip(node.variables, kinds, strict=True))):
            if node.condition is not None:
                self._require(node.condition, types.BOOL, f"the filter of {node.macro}()")
            if node.macro in {"all", "exists", "existsOne", "filter"}:
                self._require(node.body, types.BOOL, f"the condition of {node.macro}()")
            return self._outcome(node, ranged, kinds[0], self.check(node.body))

    def _iterated(self, node: Comprehension, ranged: CelType) -> list[CelType]:
        """The types of the variables."""
        two = len(node.variables) == 2
        if ranged.kind is Kind.LIST:
            return [types.INT, ranged.params[0]] if two else [ranged.params[0]]
        if ranged.kind is Kind.MAP:
            return list(ranged.params) if two else [ranged.params[0]]
        if ranged.kind not in {Kind.DYN, Kind.PARAMETER}:
            self._fail(node.at, f"{node.macro}() does not go over a value of type {ranged}", expected="a list or a map")
        self.types.fits(types.DYN, ranged)
        return [types.DYN] * len(node.variables)

    def _outcome(self, node: Comprehension, ranged: CelType, first: CelType, body: CelType) -> CelType:
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
                    self._fail(node.body.at, f"the entry is of type {body}", expected="a map literal: {key: value}")
                return self.types.resolve(entry)
            case "sortBy":
                sort = FUNCTIONS["@sortByAssociatedKeys"]
                node.overloads, result = self._resolve(node.body, sort, [ranged, types.list_of(body)], method=True)
                return result
        return types.BOOL

    def _optional_map(self, node: OptionalMap) -> CelType:
        inner = self.types.fresh()
        if not self.types.fits(self.check(node.target), types.optional_of(inner)):
            macro = "optFlatMap" if node.flat else "optMap"
            found = self.types.resolve(node.target.type, unbound_is_dyn=True)
            self._fail(node.at, f"{macro}() does not take a value of type {found}", expected="an optional")
        with self._bound({node.variable: self.types.resolve(inner)}):
            body = self.check(node.body)
        if not node.flat:
            return types.optional_of(body)
        if not self.types.fits(body, types.optional_of(self.types.fresh())):
            self._fail(node.body.at, f"the body of optFlatMap() is of type {body}", expected="an optional")
        return self.types.resolve(body)


def _rename(generic: CelType, names: Mapping[str, CelType]) -> CelType:
    if generic.kind is Kind.PARAMETER:
        return names[generic.name]
    if not generic.params:
        return generic
    return CelType(generic.kind, generic.name, tuple(_rename(param, names) for param in generic.params))
