"""Tokens to a syntax tree, by recursive descent; CEL's grammar has no ambiguity that needs more."""

from __future__ import annotations

from collections.abc import Callable

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelError, error_at
from navarch.schema.cel.lexer import RESERVED, Token, tokens
from navarch.schema.cel.literals import bytes_value, float_value, int_value, string_value, uint_value
from navarch.schema.cel.macros import expand
from navarch.schema.cel.nodes import (
    Call,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    MessageField,
    MessageLiteral,
    Node,
    Select,
)
from navarch.schema.cel.types import CelType

MAX_DEPTH = 250

_LOGICAL = 2
_LEVELS = {
    "||": 1,
    "&&": _LOGICAL,
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 3),
    **dict.fromkeys("+-", 4),
    **dict.fromkeys("*/%", 5),
}
"""How tightly each operator binds."""
_LITERALS: dict[str, tuple[Callable[[str], object], CelType, str]] = {
    "string": (string_value, types.STRING, "an escape that is no character"),
    "bytes": (lambda text: bytes_value(text[1:]), types.BYTES, "a Unicode escape in bytes; write \\x.. for each byte"),
    "int": (int_value, types.INT, "an integer outside 64 bits"),
    "uint": (uint_value, types.UINT, "an unsigned integer outside 64 bits"),
    "float": (float_value, types.DOUBLE, "a number beyond the largest double"),
    "true": (lambda _: True, types.BOOL, ""),
    "false": (lambda _: False, types.BOOL, ""),
    "null": (lambda _: None, types.NULL, ""),
}


def parse(source: str, *, builds: bool = False) -> Node:
    """The tree of `source`, macros recognised; messages only if it `builds` some. Raises `CelError`."""
    parser = _Parser(source, builds=builds)
    node = parser.expression()
    parser.expect("end", "an operator or the end of the rule")
    return node


class _Parser:
    def __init__(self, source: str, *, builds: bool) -> None:
        self._source = source
        self._builds = builds
        self._tokens = tokens(source)
        self._next = 0
        self._depth = 0

    def expression(self) -> Node:
        self._depth += 1
        self._limit(self._depth)
        condition = self._binary(lowest=1)
        if mark := self._take("?"):
            chosen = self._binary(lowest=1)
            self.expect(":", "`:` and the value for when the condition is false")
            condition = self._call("_?_:_", [condition, chosen, self.expression()], mark.at)
        self._depth -= 1
        return condition

    def expect(self, kind: str, wanted: str) -> Token:
        token = self._take(kind)
        if token is None:
            raise self._unexpected(wanted)
        return token

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self, *kinds: str) -> Token | None:
        token = self._tokens[self._next]
        if token.kind not in kinds:
            return None
        self._next += 1
        return token

    def _unexpected(self, wanted: str, remedy: str = "") -> CelError:
        token = self._peek
        found = "the rule ends here" if token.kind == "end" else f"unexpected {token.text!r}"
        return error_at(self._source, token.at, found, expected=wanted, remedy=remedy)

    def _call(self, function: str, args: list[Node], at: int) -> Call:
        return Call(start=args[0].start, at=at, function=function, target=None, args=args)

    def _binary(self, lowest: int) -> Node:
        """Operators that bind at least as tightly as `lowest`, the left ones first."""
        left = self._unary()
        length = 0
        while (level := _LEVELS.get(self._peek.kind, 0)) >= lowest:
            length += level > _LOGICAL
            self._limit(length)
            operator = self.expect(self._peek.kind, "an operator")
            left = self._joined(operator, left, self._binary(level + 1))
        return left

    def _joined(self, operator: Token, left: Node, right: Node) -> Call:
        """`a && b && c` is one call with three terms, so that a long one is not a deep one."""
        name = "@in" if operator.kind == "in" else f"_{operator.kind}_"
        if name in {"_&&_", "_||_"} and isinstance(left, Call) and left.function == name:
            left.args.append(right)
            return left
        return self._call(name, [left, right], operator.at)

    def _limit(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise error_at(self._source, self._peek.at, f"more than {MAX_DEPTH} expressions inside one another")

    def _unary(self) -> Node:
        operator = self._take("!") or (None if self._at_negative_number() else self._take("-"))
        if operator is None:
            return self._member()
        count = 1
        while self._take(operator.kind):
            count += 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        call = self._call(f"{operator.kind}_", [operand], operator.at)
        call.start = operator.at
        return call

    def _at_negative_number(self) -> bool:
        return self._peek.kind == "-" and self._tokens[self._next + 1].kind in {"int", "float"}

    def _member(self) -> Node:
        node = self._primary()
        length = 0
        while True:
            length += 1
            self._limit(length - 1)
            if self._take("."):
                node = self._after_dot(node)
            elif bracket := self._take("["):
                name = "_[?_]" if self._take("?") else "_[_]"
                node = self._call(name, [node, self.expression()], bracket.at)
                self.expect("]", "`]`")
            elif self._peek.kind == "{" and isinstance(node, Ident | Select):
                node = self._message(node)
            else:
                return node

    def _after_dot(self, operand: Node) -> Node:
        optional = self._take("?") is not None
        name = self._take("name")
        if name is None:
            word = self._peek.text
            raise self._unexpected(
                "a field or function name", f"write `__{word}__` for a field of that name" if word in RESERVED else ""
            )
        if self._peek.kind != "(" or optional:
            return Select(start=operand.start, at=name.at, operand=operand, field=name.text, optional=optional)
        call = Call(start=operand.start, at=name.at, function=name.text, target=operand, args=self._arguments())
        return expand(call, self._source)

    def _arguments(self) -> list[Node]:
        self.expect("(", "`(`")
        args: list[Node] = []
        if self._take(")"):
            return args
        args.append(self.expression())
        while self._take(","):
            args.append(self.expression())
        self.expect(")", "`,` or `)`")
        return args

    def _primary(self) -> Node:
        token = self._peek
        if token.kind in _LITERALS or self._at_negative_number():
            return self._literal()
        if token.kind in {".", "name"}:
            return self._name()
        self._next += 1
        if token.kind == "(":
            inner = self.expression()
            self.expect(")", "`)`")
            return inner
        if token.kind == "[":
            return self._list(token)
        if token.kind == "{":
            return self._map(token)
        self._next -= 1
        raise self._unexpected("a value: a name, a literal, `(`, `[` or `{`")

    def _literal(self) -> Literal:
        sign = self._take("-")
        token = self._peek
        self._next += 1
        convert, literal_type, fault = _LITERALS[token.kind]
        start = sign.at if sign else token.at
        try:
            value = convert("-" + token.text if sign else token.text)
        except ValueError:
            raise error_at(self._source, start, f"{token.text} is {fault}") from None
        return Literal(start=start, at=start, type=literal_type, value=value)

    def _name(self) -> Node:
        first = self._peek
        self._take(".")
        name = self.expect("name", "a name")
        if name.text in RESERVED:
            raise error_at(self._source, name.at, f"{name.text!r} is a reserved word", remedy="choose another name")
        if self._peek.kind != "(":
            return Ident(start=first.at, at=name.at, name=name.text)
        call = Call(start=first.at, at=name.at, function=name.text, target=None, args=self._arguments())
        return expand(call, self._source)

    def _list(self, opening: Token) -> ListLiteral:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._closes("]", bool(elements)):
            if self._take("?"):
                optional.add(len(elements))
            elements.append(self.expression())
        return ListLiteral(start=opening.at, at=opening.at, elements=elements, optional=frozenset(optional))

    def _map(self, opening: Token) -> MapLiteral:
        entries: list[MapEntry] = []
        while not self._closes("}", bool(entries)):
            optional = self._take("?") is not None
            key = self.expression()
            self.expect(":", "`:` and the value of this key")
            entries.append(MapEntry(key=key, value=self.expression(), optional=optional))
        return MapLiteral(start=opening.at, at=opening.at, entries=entries)

    def _message(self, named: Ident | Select) -> MessageLiteral:
        name = _dotted(named)
        if not self._builds or not name:
            raise self._unexpected("an operator", "messages cannot be built in a rule")
        opening = self.expect("{", "`{`")
        fields: list[MessageField] = []
        while not self._closes("}", bool(fields)):
            optional = self._take("?") is not None
            field = self.expect("name", "the name of a field")
            self.expect(":", "`:` and the value of this field")
            fields.append(MessageField(name=field.text, value=self.expression(), optional=optional))
        return MessageLiteral(start=named.start, at=opening.at, name=name, fields=fields)

    def _closes(self, closing: str, begun: bool) -> bool:
        """Takes the comma or the closing bracket before the next item; a trailing comma is allowed."""
        comma = self._take(",") if begun else None
        if self._take(closing):
            return True
        if begun and comma is None:
            raise self._unexpected(f"`,` or `{closing}`")
        return False


def _dotted(node: Node) -> str:
    """`a.b.c` if the node is such a name, else nothing."""
    match node:
        case Ident(name=name):
            return name
        case Select(operand=operand, field=field, optional=False, test=False):
            prefix = _dotted(operand)
            return f"{prefix}.{field}" if prefix else ""
    return ""
