"""The text of label selectors: `app=shop,tier in (web,api),!canary`."""

from __future__ import annotations

import re
from collections.abc import Container
from enum import StrEnum
from typing import Final, NamedTuple

from navarch.errors import InvalidValueError


class Operator(StrEnum):
    """How a requirement relates a key to its values, as written in the text of a selector."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


class LabelTerm(NamedTuple):
    """One requirement as it was written; neither key nor values have been checked."""

    key: str
    operator: Operator
    values: tuple[str, ...]


_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|\Z)")
_END: Final = ""
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">", _END})
_BINARY_OPERATORS: Final = {
    operator.value: operator for operator in Operator if operator not in {Operator.EXISTS, Operator.DOES_NOT_EXIST}
}


def parse_label_terms(text: str) -> list[LabelTerm]:
    """The requirements in the order they were written; InvalidValueError for everything that Kubernetes refuses.

    >>> parse_label_terms("app=shop")
    [LabelTerm(key='app', operator=<Operator.EQUALS: '='>, values=('shop',))]
    """
    return _Parser(text).terms()


class _Parser:
    """Takes tokens from the front; `in` and `notin` are operators only where an operator can stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ahead: list[str] = _TOKEN.findall(text)[::-1]

    def terms(self) -> list[LabelTerm]:
        found: list[LabelTerm] = []
        while self._next != _END:
            if found:
                self._take({","}, "',' or the end")
            found.append(self._term())
        return found

    @property
    def _next(self) -> str:
        return self._ahead[-1] if self._ahead else _END

    def _term(self) -> LabelTerm:
        negated = self._skip("!")
        key = self._word("a label key")
        if negated:
            return LabelTerm(key, Operator.DOES_NOT_EXIST, ())
        if self._next in {",", _END}:
            return LabelTerm(key, Operator.EXISTS, ())
        operator = _BINARY_OPERATORS[self._take(_BINARY_OPERATORS, "=, ==, !=, in, notin, < or >")]
        if operator in {Operator.IN, Operator.NOT_IN}:
            return LabelTerm(key, operator, self._value_set())
        return LabelTerm(key, operator, (self._value(),))

    def _value(self) -> str:
        return "" if self._next in {",", _END} else self._word("a label value")

    def _value_set(self) -> tuple[str, ...]:
        """Between parentheses; an empty place between commas is the empty value."""
        self._take({"("}, "'('")
        values = {self._element()}
        while self._take({",", ")"}, "',' or ')'") == ",":
            values.add(self._element())
        return tuple(sorted(values))

    def _element(self) -> str:
        return "" if self._next in {",", ")"} else self._word("a label value")

    def _word(self, expected: str) -> str:
        if self._next in _SYMBOLS:
            raise self._unexpected(expected)
        return self._ahead.pop()

    def _take(self, allowed: Container[str], expected: str) -> str:
        if self._next not in allowed:
            raise self._unexpected(expected)
        return self._ahead.pop()

    def _skip(self, symbol: str) -> bool:
        found = self._next == symbol
        if found:
            self._ahead.pop()
        return found

    def _unexpected(self, expected: str) -> InvalidValueError:
        got = f"{self._next!r}" if self._next else "the end"
        return InvalidValueError(
            f"label selector {self._text!r}: expected {expected}, got {got}; "
            "write requirements such as a=b, a!=b, a in (b,c), a notin (b,c), a and !a, with commas between them"
        )
