"""What the real server says about selectors that are none: its parser, for its words alone."""

from __future__ import annotations

import re
from typing import Final

from navarch.api.names import LABEL_KEY, LABEL_VALUE
from navarch.cluster.server.wire.causes import invalid

__all__ = ["field_selector_fault", "label_selector_fault"]

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_OPERATORS: Final = frozenset({"in", "notin", "=", "==", "!=", ">", "<"})
_LISTED: Final = "in, notin, =, ==, !=, gt, lt"
_WHOLE: Final = re.compile(r"[+-]?\d+$")


class _FaultError(Exception):
    """What is wrong."""


def label_selector_fault(text: str) -> str:
    """The first thing that is wrong with a label selector; empty if nothing is.

    >>> label_selector_fault("a=b=c"), label_selector_fault("a in (b)")
    ("found '=', expected: ',' or 'end of string'", '')
    """
    try:
        _Labels(text).check()
    except _FaultError as fault:
        return str(fault)
    return ""


def field_selector_fault(text: str) -> str:
    """The same for a field selector."""
    terms = [term for term in re.split(r"(?<!\\),", text) if term]
    odd = next((term for term in sorted(terms) if not re.search(r"(?<!\\)=", term)), "")
    return f"invalid selector: '{text}'; can't understand '{odd}'" if odd else ""


class _Labels:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text.rstrip()), ""]
        self._place = 0

    def check(self) -> None:
        while self._next:
            if self._next in _SYMBOLS - {"!"}:
                raise _FaultError(f"found '{self._next}', expected: !, identifier, or 'end of string'")
            try:
                self._requirement()
            except _FaultError as fault:
                raise _FaultError(f"unable to parse requirement: {fault}") from None
            if (end := self._taken()) not in {"", ","}:
                raise _FaultError(f"found '{end}', expected: ',' or 'end of string'")
            if end and (not self._next or self._next in _SYMBOLS - {"!"}):
                raise _FaultError(f"found '{self._next}', expected: identifier after ','")

    @property
    def _next(self) -> str:
        return self._tokens[self._place]

    def _taken(self) -> str:
        found = self._next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return found

    def _requirement(self) -> None:
        negated = self._next == "!"
        key = self._word() if not negated or self._taken() else ""
        if said := LABEL_KEY.faults(key):
            raise _FaultError(str(invalid("<nil>", key, "; ".join(said))))
        if self._next in {"", ","}:
            return
        operator = self._taken()
        if operator not in _OPERATORS:
            raise _FaultError(f"found '{operator}', expected: {_LISTED}")
        values = self._values() if operator in {"in", "notin"} else [self._value()]
        self._check_values(key, operator, sorted(set(values)))

    def _word(self) -> str:
        word = self._taken()
        if not word or word in _SYMBOLS:
            raise _FaultError(f"found '{word}', expected: identifier")
        return word

    def _value(self) -> str:
        return "" if self._next in {"", ","} else self._word()

    def _values(self) -> list[str]:
        if (opening := self._taken()) != "(":
            raise _FaultError(f"found '{opening}' expected: '('")
        if self._next != ")" and (not self._next or self._next in _SYMBOLS - {","}):
            raise _FaultError(f"found '{self._next}', expected: ',', ')' or identifier")
        values = [""] if self._next in {")", ","} else []
        while (word := self._taken()) != ")":
            if word == ",":
                values += [""] if self._next in {")", ","} else []
            elif not word or word in _SYMBOLS:
                raise _FaultError(f"found '{word}', expected: ',', or identifier")
            else:
                values.append(word)
                if self._next not in {",", ")"}:
                    raise _FaultError(f"found '{self._next}', expected: ',' or ')'")
        return values

    @staticmethod
    def _check_values(key: str, operator: str, values: list[str]) -> None:
        if operator in {"<", ">"} and not _WHOLE.match(values[0]):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _FaultError(str(invalid("values[0]", values[0], why)))
        faults = [
            str(invalid(f"values[{index}][{key}]", value, "; ".join(said)))
            for index, value in enumerate(values)
            if (said := LABEL_VALUE.faults(value))
        ]
        if faults:
            raise _FaultError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
