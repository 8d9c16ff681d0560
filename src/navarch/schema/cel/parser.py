"""The parser: turns tokens into a syntax tree, by recursive descent."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelError, Faults, Said
from navarch.schema.cel.expressions import (
    CallExpr,
    Expr,
    IdentExpr,
    ListExpr,
    LiteralExpr,
    MapEntry,
    MapExpr,
    SelectExpr,
    StructExpr,
    StructField,
)
from navarch.schema.cel.lexer import (
    BEGINNINGS,
    NAMES,
    OPERATORS,
    RESERVED,
    Lexeme,
    bytes_value,
    expecting,
    float_value,
    input_of,
    int_value,
    string_value,
    tokens,
    uint_value,
)
from navarch.schema.cel.macros import expand
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
_LITERALS: dict[str, tuple[Callable[[str], object], CelType, str, str]] = {
    "string": (string_value, types.STRING, "an escape that is no character", "invalid unicode code point"),
    "bytes": (
        lambda text: bytes_value(text[1:]),
        types.BYTES,
        "a Unicode escape in bytes; write \\x.. for each byte",
        "unable to unescape string",
    ),
    "int": (int_value, types.INT, "an integer outside 64 bits", "invalid int literal"),
    "uint": (uint_value, types.UINT, "an unsigned integer outside 64 bits", "invalid uint literal"),
    "float": (float_value, types.DOUBLE, "a number beyond the largest double", "invalid double literal"),
    "true": (lambda _: True, types.BOOL, "", ""),
    "false": (lambda _: False, types.BOOL, "", ""),
    "null": (lambda _: None, types.NULL, "", ""),
}
"""How each is read, its type, and what is said if it cannot be."""
_FIELD = "a field or function name"
_VALUE = "a value: a name, a literal, `(`, `[` or `{`"


def parse(source: str, *, builds: bool = False) -> Expr:
    """Returns the tree of `source` with macros expanded; messages are allowed only if it `builds` them. Raises
    `CelError`.
    """
    parser = _Parser(source, builds=builds)
    node = parser.expression()
    parser.expect("end", "an operator or the end of the rule")
    parser.faults.check()
    return node


class _Parser:
    """Goes on after a token too many or too few, as the API server's does, so that what else is wrong is told, too."""

    def __init__(self, source: str, *, builds: bool) -> None:
        self.faults = Faults(source)
        self._source = source
        self._builds = builds
        self._tokens = tokens(source, self.faults)
        self._next = 0
        self._depth = 0
        self._around: list[AbstractSet[str]] = [frozenset({"end"})]
        """What may follow the expressions that are being read, besides operators."""

    def expression(self) -> Expr:
        self._depth += 1
        self._limit(self._depth)
        condition = self._binary(lowest=1)
        if mark := self._take("?"):
            self._around.append(frozenset({":"}))
            chosen = self._binary(lowest=1)
            self._around.pop()
            self.expect(":", "`:` and the value for when the condition is false")
            condition = self._call("_?_:_", [condition, chosen, self.expression()], mark.at)
        self._depth -= 1
        return condition

    def expect(self, kind: str, wanted: str) -> Lexeme:
        token = self._take(kind)
        if token is not None:
            return token
        if self._leaves_out(frozenset({kind}), wanted):
            return self.expect(kind, wanted)
        if self._peek.kind not in self._following(kind):
            raise self._unexpected(wanted, frozenset({kind}))
        self._note(f"missing '{kind}' at {input_of(self._peek)}", wanted)
        return Lexeme(kind, "", self._peek.at)

    def _following(self, kind: str) -> AbstractSet[str]:
        """What may come after a token of this kind that is missing."""
        if kind in {")", "]", "}"}:
            return OPERATORS | self._around[-1]
        return BEGINNINGS if kind == ":" else frozenset()

    def _begins(self, *others: str) -> None:
        """Sees to it that an expression begins here, or one of the others comes. Raises `CelError`."""
        kind = self._peek.kind
        if kind in BEGINNINGS or kind in others:
            return
        fitting = BEGINNINGS.union(others)
        if not self._leaves_out(fitting, _VALUE):
            raise self._unexpected(_VALUE, fitting)

    def _leaves_out(self, fitting: AbstractSet[str], wanted: str) -> bool:
        """Leaves out a token if the next one fits."""
        if self._peek.kind == "end" or self._tokens[self._next + 1].kind not in fitting:
            return False
        self._note(f"extraneous input {input_of(self._peek)} {expecting(fitting)}", wanted)
        self._next += 1
        return True

    @property
    def _peek(self) -> Lexeme:
        return self._tokens[self._next]

    def _take(self, *kinds: str) -> Lexeme | None:
        token = self._tokens[self._next]
        if token.kind not in kinds:
            return None
        self._next += 1
        return token

    def _unexpected(self, wanted: str, fitting: AbstractSet[str]) -> CelError:
        self._note(f"mismatched input {input_of(self._peek)} {expecting(fitting)}", wanted)
        return self.faults.error()

    def _note(self, said: str, wanted: str, remedy: str = "") -> None:
        token = self._peek
        found = "the rule ends here" if token.kind == "end" else f"unexpected {token.text!r}"
        self.faults.add(token.at, found, Said(token.at, f"Syntax error: {said}"), expected=wanted, remedy=remedy)

    def _inside(self, *closing: str) -> Expr:
        """An expression, after which one of these comes."""
        self._around.append(frozenset(closing))
        node = self.expression()
        self._around.pop()
        return node

    def _call(self, function: str, args: list[Expr], at: int) -> CallExpr:
        return CallExpr(start=args[0].start, at=at, function=function, target=None, args=args)

    def _binary(self, lowest: int) -> Expr:
        """Operators that bind at least as tightly as `lowest`, the left ones first."""
        left = self._unary()
        length = 0
        while (level := _LEVELS.get(self._peek.kind, 0)) >= lowest:
            length += level > _LOGICAL
            self._limit(length)
            operator = self.expect(self._peek.kind, "an operator")
            left = self._joined(operator, left, self._binary(level + 1))
        return left

    def _joined(self, operator: Lexeme, left: Expr, right: Expr) -> CallExpr:
        """`a && b && c` is one call with three terms, so that a long one is not a deep one."""
        name = "@in" if operator.kind == "in" else f"_{operator.kind}_"
        if name in {"_&&_", "_||_"} and isinstance(left, CallExpr) and left.function == name:
            left.args.append(right)
            return left
        return self._call(name, [left, right], operator.at)

    def _limit(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            said = Said(0, f"expression recursion limit exceeded: {MAX_DEPTH}")
            self.faults.add(self._peek.at, f"more than {MAX_DEPTH} expressions inside one another", said)
            raise self.faults.error()

    def _unary(self) -> Expr:
        self._begins()
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

    def _member(self) -> Expr:
        self._begins()
        node = self._primary()
        length = 0
        while True:
            length += 1
            self._limit(length - 1)
            if dot := self._take("."):
                node = self._after_dot(node, dot)
            elif bracket := self._take("["):
                self._begins("?")
                name = "_[?_]" if self._take("?") else "_[_]"
                node = self._call(name, [node, self._inside("]")], bracket.at)
                self.expect("]", "`]`")
            elif self._peek.kind == "{" and isinstance(node, IdentExpr | SelectExpr):
                node = self._message(node)
            else:
                return node

    def _after_dot(self, operand: Expr, dot: Lexeme) -> Expr:
        optional = self._take("?") is not None
        name = self._take("name")
        if name is None:
            raise self._unexpected(_FIELD, NAMES) if optional else self._no_name(dot)
        mark = self._peek.at
        if self._peek.kind != "(" or optional:
            return SelectExpr(
                start=operand.start, at=name.at, mark=dot.at, operand=operand, field=name.text, optional=optional
            )
        args = self._arguments()
        call = CallExpr(start=operand.start, at=name.at, mark=mark, function=name.text, target=operand, args=args)
        return expand(call, self.faults)

    def _no_name(self, dot: Lexeme) -> CelError:
        token = self._peek
        remedy = f"write `__{token.text}__` for a field of that name" if token.text in RESERVED else ""
        between = "".join(each for each in self._source[dot.at + 1 : token.at] if each.isspace())
        self._note(f"no viable alternative at input '.{between}{token.text}'", _FIELD, remedy)
        return self.faults.error()

    def _arguments(self) -> list[Expr]:
        self.expect("(", "`(`")
        args: list[Expr] = []
        self._begins(")")
        if self._take(")"):
            return args
        args.append(self._inside(",", ")"))
        while self._take(","):
            args.append(self._inside(",", ")"))
        self.expect(")", "`,` or `)`")
        return args

    def _primary(self) -> Expr:
        token = self._peek
        if token.kind in _LITERALS or self._at_negative_number():
            return self._literal()
        if token.kind in {".", "name"}:
            return self._name()
        if token.kind in {"-", "!"}:
            raise self._unexpected(_VALUE, BEGINNINGS)
        self._next += 1
        if token.kind == "(":
            inner = self._inside(")")
            self.expect(")", "`)`")
            return inner
        return self._list(token) if token.kind == "[" else self._map(token)

    def _literal(self) -> LiteralExpr:
        sign = self._take("-")
        token = self._peek
        self._next += 1
        convert, literal_type, fault, said = _LITERALS[token.kind]
        start = sign.at if sign else token.at
        value: object = None
        try:
            value = convert("-" + token.text if sign else token.text)
        except ValueError:
            self.faults.add(start, f"{token.text} is {fault}", Said(start, said))
        return LiteralExpr(start=start, at=start, type=literal_type, value=value)

    def _name(self) -> Expr:
        first = self._peek
        self._take(".")
        name = self._take("name")
        if name is None:
            raise self._no_name(first)
        if name.text in RESERVED:
            said = Said(name.at, f"reserved identifier: {name.text}")
            self.faults.add(name.at, f"{name.text!r} is a reserved word", said, remedy="choose another name")
        mark = self._peek.at
        if self._peek.kind != "(":
            return IdentExpr(start=first.at, at=name.at, name=name.text)
        args = self._arguments()
        call = CallExpr(start=first.at, at=name.at, mark=mark, function=name.text, target=None, args=args)
        return expand(call, self.faults)

    def _list(self, opening: Lexeme) -> ListExpr:
        elements: list[Expr] = []
        optional: set[int] = set()
        while not self._closes("]", bool(elements)):
            if self._take("?"):
                optional.add(len(elements))
            elements.append(self._inside(",", "]"))
        return ListExpr(start=opening.at, at=opening.at, elements=elements, optional=frozenset(optional))

    def _map(self, opening: Lexeme) -> MapExpr:
        entries: list[MapEntry] = []
        while not self._closes("}", bool(entries)):
            optional = self._take("?") is not None
            key = self._inside(":")
            self.expect(":", "`:` and the value of this key")
            entries.append(MapEntry(key=key, value=self._inside(",", "}"), optional=optional))
        return MapExpr(start=opening.at, at=opening.at, entries=entries)

    def _message(self, named: IdentExpr | SelectExpr) -> StructExpr:
        name = _dotted(named)
        if not self._builds or not name:
            at, remedy = self._peek.at, "messages cannot be built in a rule"
            said = Said(at, f"undeclared reference to '{name}' (in container '')")
            self.faults.add(at, "unexpected '{'", said, expected="an operator", remedy=remedy)
            raise self.faults.error()
        opening = self.expect("{", "`{`")
        fields: list[StructField] = []
        while not self._closes("}", bool(fields)):
            optional = self._take("?") is not None
            field = self.expect("name", "the name of a field")
            self.expect(":", "`:` and the value of this field")
            fields.append(StructField(name=field.text, value=self._inside(",", "}"), optional=optional))
        return StructExpr(start=named.start, at=opening.at, name=name, fields=fields)

    def _closes(self, closing: str, begun: bool) -> bool:
        """Takes the comma or the closing bracket before the next item; a trailing comma is allowed."""
        if not begun:
            self._begins(closing, ",", "?")
        comma = self._take(",")
        if self._take(closing):
            return True
        if comma is not None and self._peek.kind not in BEGINNINGS | {"?"}:
            self.expect(closing, f"`{closing}`")
            return True
        if begun and comma is None:
            return self._closes_otherwise(closing)
        return False

    def _closes_otherwise(self, closing: str) -> bool:
        wanted, fitting = f"`,` or `{closing}`", frozenset({",", closing})
        if self._leaves_out(fitting, wanted):
            return self._closes(closing, begun=True)
        raise self._unexpected(wanted, fitting)


def _dotted(node: Expr) -> str:
    """`a.b.c` if the node is such a name, else nothing."""
    match node:
        case IdentExpr(name=name):
            return name
        case SelectExpr(operand=operand, field=field, optional=False, test=False):
            prefix = _dotted(operand)
            return f"{prefix}.{field}" if prefix else ""
    return ""
