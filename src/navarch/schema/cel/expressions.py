"""The syntax tree. The checker sets `type` and, for calls, `overloads`; nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from navarch.schema.cel.errors import Said
from navarch.schema.cel.signatures import Overload
from navarch.schema.cel.types import DYN, CelType


@dataclass(slots=True, kw_only=True)
class Expr:
    """An expression. `start` is its first character in the source and `at` the character that an error points to;
    `mark` is the one that cel-go points to, if it differs: the dot or the parenthesis.
    """

    start: int
    at: int
    mark: int = -1
    type: CelType = DYN

    def said(self, words: str) -> Said:
        """Returns a fault of this expression in cel-go's words."""
        return Said(self.at if self.mark < 0 else self.mark, words)

    def children(self) -> Iterator[Expr]:
        yield from ()


@dataclass(slots=True, kw_only=True)
class LiteralExpr(Expr):
    value: object


@dataclass(slots=True, kw_only=True)
class IdentExpr(Expr):
    name: str
    named_type: CelType | None = None
    """Set by the checker if the name is that of a type, such as `int`."""


@dataclass(slots=True, kw_only=True)
class SelectExpr(Expr):
    """`operand.field`; `optional` for `operand.?field`, `test` for `has(operand.field)`."""

    operand: Expr
    field: str
    optional: bool = False
    test: bool = False
    named_type: CelType | None = None
    """Set by the checker if the whole selection is the name of a type, such as `net.IP`."""

    def children(self) -> Iterator[Expr]:
        yield self.operand


@dataclass(slots=True, kw_only=True)
class CallExpr(Expr):
    """A call of a function or, with a target, of a method. Operators are functions with names such as `_+_`."""

    function: str
    target: Expr | None
    args: list[Expr]
    overloads: tuple[Overload, ...] = ()

    def children(self) -> Iterator[Expr]:
        if self.target is not None:
            yield self.target
        yield from self.args

    def operands(self) -> list[Expr]:
        return [*([] if self.target is None else [self.target]), *self.args]


@dataclass(slots=True, kw_only=True)
class ListExpr(Expr):
    elements: list[Expr]
    optional: frozenset[int] = frozenset()

    def children(self) -> Iterator[Expr]:
        yield from self.elements


@dataclass(slots=True, kw_only=True)
class MapEntry:
    key: Expr
    value: Expr
    optional: bool


@dataclass(slots=True, kw_only=True)
class MapExpr(Expr):
    entries: list[MapEntry]

    def children(self) -> Iterator[Expr]:
        for entry in self.entries:
            yield entry.key
            yield entry.value


@dataclass(slots=True, kw_only=True)
class StructField:
    name: str
    value: Expr
    optional: bool


@dataclass(slots=True, kw_only=True)
class StructExpr(Expr):
    """`Object.spec{replicas: 3}`: an object of a named type."""

    name: str
    fields: list[StructField]

    def children(self) -> Iterator[Expr]:
        for each in self.fields:
            yield each.value


@dataclass(slots=True, kw_only=True)
class ComprehensionExpr(Expr):
    """A macro over a list or map: `items.all(x, …)`, `items.transformMap(k, v, …)`, `items.sortBy(x, …)`.

    `macro` is its name with the aliases folded (`existsOne`); `condition` is the optional filter of a transform.
    """

    macro: str
    range: Expr
    variables: tuple[str, ...]
    condition: Expr | None
    body: Expr
    overloads: tuple[Overload, ...] = field(default=())

    def children(self) -> Iterator[Expr]:
        yield self.range
        if self.condition is not None:
            yield self.condition
        yield self.body


@dataclass(slots=True, kw_only=True)
class OptionalMapExpr(Expr):
    """`target.optMap(x, body)`, or `optFlatMap` if the body returns an optional itself."""

    target: Expr
    variable: str
    body: Expr
    flat: bool

    def children(self) -> Iterator[Expr]:
        yield self.target
        yield self.body


def walk(node: Expr) -> Iterator[Expr]:
    """Yields `node` and everything under it, outermost first, in time that does not depend on how deep it is."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending += reversed([*each.children()])
