"""Python expressions as text, laid out as `ruff format` lays them out: lines of at most 120 characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

WIDTH: Final = 120
_INDENT: Final = "    "
_QUOTES: Final = '"""'
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


@dataclass(frozen=True, slots=True)
class Brackets:
    """An expression with brackets, which are opened where it does not fit on its line.

    `one_line` first tries to keep the items together on the next line, as in calls. `one_comma` adds a comma to a single
    item, as in tuples.
    """

    opening: str
    items: tuple[Expression, ...]
    closing: str
    one_line: bool = False
    one_comma: bool = False


@dataclass(frozen=True, slots=True)
class OrNone:
    """`inner | None`."""

    inner: Expression


Expression: TypeAlias = str | Brackets | OrNone


def flat(expression: Expression) -> str:
    """Returns the expression in one line."""
    if isinstance(expression, str):
        return expression
    if isinstance(expression, OrNone):
        return f"{flat(expression.inner)} | None"
    comma = "," if expression.one_comma and len(expression.items) == 1 else ""
    return f"{expression.opening}{', '.join(map(flat, expression.items))}{comma}{expression.closing}"


def layout(expression: Expression, indent: int, *, used: int, tail: int = 0) -> str:
    """Returns the expression in one line if it fits, otherwise in several.

    Its first line begins after `used` characters, its last one is followed by `tail` more. Lines after the first begin
    with `indent` steps.
    """
    whole = flat(expression)
    if isinstance(expression, str) or used + len(whole) + tail <= WIDTH:
        return whole
    if isinstance(expression, OrNone):
        return f"{layout(expression.inner, indent, used=used)}\n{_INDENT * indent}| None"
    inner = _INDENT * (indent + 1)
    together = ", ".join(map(flat, expression.items))
    if expression.one_line and len(inner) + len(together) <= WIDTH:
        lines = [inner + together]
    else:
        comma = "," if len(expression.items) > 1 or expression.one_comma else ""
        lines = [
            inner + layout(item, indent + 1, used=len(inner), tail=len(comma)) + comma for item in expression.items
        ]
    return "\n".join([expression.opening, *lines, _INDENT * indent + expression.closing])


def assignment(name: str, annotation: Expression, value: Expression | None, indent: int = 1) -> str:
    """Returns `name: annotation = value` as a statement."""
    begin = f"{_INDENT * indent}{name}: "
    right = "" if value is None else f" = {flat(value)}"
    if len(begin) + len(flat(annotation)) + len(right) <= WIDTH:
        return begin + flat(annotation) + right
    if isinstance(value, Brackets):
        left = f"{begin}{flat(annotation)} = "
        if len(left) + len(value.opening) <= WIDTH:
            return left + layout(value, indent, used=len(left))
    if isinstance(annotation, OrNone):
        inner = _INDENT * (indent + 1)
        return f"{begin}(\n{inner}{layout(annotation, indent + 1, used=len(inner))}\n{_INDENT * indent}){right}"
    return begin + layout(annotation, indent, used=len(begin), tail=len(right)) + right


def call(name: str, arguments: Iterable[Expression]) -> Expression:
    """Returns the call of a function or class."""
    return Brackets(f"{name}(", tuple(arguments), ")", one_line=True)


def subscript(name: str, arguments: Iterable[Expression]) -> Expression:
    """Returns a type with arguments."""
    return Brackets(f"{name}[", tuple(arguments), "]")


def keyword(name: str, value: Expression) -> Expression:
    """Returns `name=value`."""
    return _prefixed(f"{name}=", value)


def literal(value: Any) -> Expression:
    """Returns a JSON value as Python.

    >>> print(flat(literal({"oneOf": [{"required": ["a"]}], "default": None, "minimum": 0.5})))
    {"oneOf": [{"required": ["a"]}], "default": None, "minimum": 0.5}
    """
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return Brackets("[", tuple(map(literal, value)), "]")
    if isinstance(value, Mapping):
        entries = (_prefixed(f"{text(str(key))}: ", literal(inner)) for key, inner in value.items())
        return Brackets("{", tuple(entries), "}")
    return repr(value)


def tuple_of(items: Iterable[Expression]) -> Expression:
    """Returns a tuple."""
    return Brackets("(", tuple(items), ")", one_comma=True)


def text(value: str) -> str:
    """Returns a text as a literal: raw if it has backslashes, in the quotes that need fewer escapes.

    >>> print(text('say "a"'), text("it's"))
    'say "a"' "it's"
    """
    quote: Literal["'", '"'] = "'" if value.count('"') > value.count("'") else '"'
    plain = all(char.isprintable() for char in value)
    if "\\" in value and quote not in value and plain and not value.endswith("\\"):
        return f"r{quote}{value}{quote}"
    return quote + "".join(_escaped(char, quote) for char in value) + quote


def docstring(description: str, indent: int) -> str:
    """Returns a description as a docstring with its indentation; lines that are too long are wrapped."""
    begin = _INDENT * indent
    first, *rest = _wrapped(description, WIDTH - len(begin)) or [""]
    first = f" {first}" if first.startswith('"') else first
    if not rest and len(begin) + len(first) + 2 * len(_QUOTES) <= WIDTH:
        last = first[:-1] + '\\"' if first.endswith('"') else first
        return f"{begin}{_QUOTES}{last}{_QUOTES}"
    lines = [f"{begin}{line}" if line else "" for line in rest]
    return "\n".join([f"{begin}{_QUOTES}{first}", *lines, f"{begin}{_QUOTES}"])


def _wrapped(description: str, width: int) -> list[str]:
    """Returns the lines of a description as they are written in a docstring; deeper lines stay deeper."""
    lines: list[str] = []
    for line in description.expandtabs(4).strip().splitlines():
        written = "".join(_escaped(char, "") for char in line.rstrip()).replace(_QUOTES, r"\"\"\"")
        depth = " " * (len(written) - len(written.lstrip()))
        lines += textwrap.wrap(
            written, width, subsequent_indent=depth, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return lines


def _prefixed(prefix: str, value: Expression) -> Expression:
    if isinstance(value, Brackets):
        return Brackets(prefix + value.opening, value.items, value.closing, value.one_line, value.one_comma)
    return prefix + flat(value)


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return f"\\{char}"
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else char.encode("unicode_escape").decode()
