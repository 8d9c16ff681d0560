"""The syntax tree. The checker fills in `type` and, for calls, `overloads`; nothing else is ever changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from navarch.schema.cel.errors import Said
from navarch.schema.cel.signatures import Overload
from navarch.schema.cel.types import DYN, CelType


@dataclass(slots=True, kw_only=True)
class Node:
    """`start` is where the expression begins in the source, `at` the character to point to when it is wrong; `mark` is the
    one that cel-go points to, if that is another: the dot or the parenthesis.
    """

    start: int
    at: int
    mark: int = -1
    type: CelType = DYN

    def said(self, words: str) -> Said:
        """A fault of this expression in cel-go's words."""
        return Said(self.at if self.mark < 0 else self.mark, words)

    def children(self) -> Iterator[Node]:
        yield from ()


@dataclass(slots=True, kw_only=True)
class Literal(Node):
    value: object


@dataclass(slots=True, kw_only=True)
class Ident(Node):
    name: str
    named_type: CelType | None = None
    """Set by the checker where the name is that of a type, such as `int`."""


@dataclass(slots=True, kw_only=True)
class Select(Node):
    """`operand.field`; `optional` for `operand.?field`, `test` for `has(operand.field)`."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False
    named_type: CelType | None = None
    """Set by the checker where the whole selection is the name of a type, such as `net.IP`."""

    def children(self) -> Iterator[Node]:
        yield self.operand


@dataclass(slots=True, kw_only=True)
class Call(Node):
    """A function or, with a target, a method. Operators are functions with names such as `_+_`."""

    function: str
    target: Node | None
    args: list[Node]
    overloads: tuple[Overload, ...] = ()

    def children(self) -> Iterator[Node]:
        if self.target is not None:
            yield self.target
        yield from self.args

    def operands(self) -> list[Node]:
        return [*([] if self.target is None else [self.target]), *self.args]


@dataclass(slots=True, kw_only=True)
class ListLiteral(Node):
    elements: list[Node]
    optional: frozenset[int] = frozenset()

    def children(self) -> Iterator[Node]:
        yield from self.elements


@dataclass(slots=True, kw_only=True)
class MapEntry:
    key: Node
    value: Node
    optional: bool


@dataclass(slots=True, kw_only=True)
class MapLiteral(Node):
    entries: list[MapEntry]

    def children(self) -> Iterator[Node]:
        for entry in self.entries:
            yield entry.key
            yield entry.value


@dataclass(slots=True, kw_only=True)
class MessageField:
    name: str
    value: Node
    optional: bool


@dataclass(slots=True, kw_only=True)
class MessageLiteral(Node):
    """`Object.spec{replicas: 3}`: an object of a type that has a name."""

    name: str
    fields: list[MessageField]

    def children(self) -> Iterator[Node]:
        for each in self.fields:
            yield each.value


@dataclass(slots=True, kw_only=True)
class Comprehension(Node):
    """A macro over a list or map: `items.all(x, …)`, `items.transformMap(k, v, …)`, `items.sortBy(x, …)`.

    `macro` is its name with the aliases folded (`existsOne`); `condition` is the optional filter of a transform.
    """

    macro: str
    range: Node
    variables: tuple[str, ...]
    condition: Node | None
    body: Node
    overloads: tuple[Overload, ...] = field(default=())

    def children(self) -> Iterator[Node]:
        yield self.range
        if self.condition is not None:
            yield self.condition
        yield self.body


@dataclass(slots=True, kw_only=True)
class OptionalMap(Node):
    """`target.optMap(x, body)`, or `optFlatMap` if the body gives an optional itself."""

    target: Node
    variable: str
    body: Node
    flat: bool

    def children(self) -> Iterator[Node]:
        yield self.target
        yield self.body


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything under it, outermost first."""
    yield node
    for child in node.children():
        yield from walk(child)
