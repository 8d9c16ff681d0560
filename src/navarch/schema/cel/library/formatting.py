"""`'%s is %d'.format([name, size])`.

Kubernetes enables the version of this function that writes numbers for readers of American English: %f groups
thousands, %e gives a superscript exponent, and what looks like the precision of %e is its width.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.library.numbers import format_double
from navarch.schema.cel.library.times import format_duration, format_timestamp
from navarch.schema.cel.types import Kind
from navarch.schema.cel.values import Uint, runtime_type

CLAUSES: dict[str, frozenset[Kind]] = {
    "s": frozenset(Kind) - {Kind.OBJECT, Kind.OPAQUE, Kind.PARAMETER},
    "d": frozenset({Kind.INT, Kind.UINT}),
    "f": frozenset({Kind.DOUBLE, Kind.STRING}),
    "e": frozenset({Kind.DOUBLE, Kind.STRING}),
    "b": frozenset({Kind.INT, Kind.UINT, Kind.BOOL}),
    "x": frozenset({Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES}),
    "X": frozenset({Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES}),
    "o": frozenset({Kind.INT, Kind.UINT}),
}
"""What each clause takes."""

_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?([A-Za-z]))|%")
_SPECIAL = re.compile(r'["\\]')
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NAMED_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DEFAULT_PRECISION = 6
_MOST_PRECISION_DIGITS = 3
_LONGEST_SHOWN = 100


def clauses(template: str) -> Iterator[tuple[str, int | None, re.Match[str]]]:
    """Each clause with its precision; `%` stands for itself. Raises `ValueError` for a clause that is none."""
    for match in _CLAUSE.finditer(template):
        if match.group() == "%%":
            yield "%", None, match
            continue
        clause = match[2]
        if clause not in CLAUSES or len(match[1] or "") > _MOST_PRECISION_DIGITS:
            raise ValueError(f"{match.group()[:_LONGEST_SHOWN]!r} is no clause")
        yield clause, None if match[1] is None else int(match[1]), match


def format_string(template: str, values: list[object]) -> str:
    """Raises `CelEvaluationError` if the clauses do not fit the values."""
    parts: list[str] = []
    end = used = 0
    try:
        for clause, precision, match in clauses(template):
            parts.append(template[end : match.start()])
            end = match.end()
            if clause == "%":
                parts.append("%")
                continue
            if used >= len(values):
                raise CelEvaluationError(f"format() has {len(values)} values, but clause {used + 1} asks for one more")
            parts.append(_format(clause, precision, values[used]))
            used += 1
    except ValueError as error:
        raise CelEvaluationError(f"format() cannot read {template[:_LONGEST_SHOWN]!r}: {error}") from None
    return "".join([*parts, template[end:]])


def _format(clause: str, precision: int | None, value: object) -> str:
    if runtime_type(value).kind not in CLAUSES[clause]:
        raise CelEvaluationError(f"format() cannot write a value of type {runtime_type(value)} with %{clause}")
    if clause in {"f", "e"}:
        number = _as_double(value)
        return _fixed(number, precision) if clause == "f" else _scientific(number, precision)
    return _WRITERS[clause](value)


def _as_double(value: object) -> float:
    if isinstance(value, str):
        if value not in _NAMED_DOUBLES:
            raise CelEvaluationError(f"format() cannot write the string {value!r} as a number")
        return _NAMED_DOUBLES[value]
    assert isinstance(value, float)
    return value


def _special(number: float) -> str | None:
    if math.isnan(number):
        return "NaN"
    return ("∞" if number > 0 else "-∞") if math.isinf(number) else None


def _fixed(number: float, precision: int | None) -> str:
    digits = _DEFAULT_PRECISION if precision is None else precision
    return _special(number) or f"{number:,.{digits}f}"


def _scientific(number: float, width: int | None) -> str:
    padded = _DEFAULT_PRECISION if width is None else width
    special = _special(number)
    if special is not None:
        return special.rjust(padded)
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    text = f"{mantissa}×10{exponent.lstrip('+').translate(_SUPERSCRIPT)}"  # noqa: RUF001 - the sign Go writes
    return text.rjust(padded)


def _hexadecimal(value: object) -> str:
    if isinstance(value, int):
        return f"{value:x}"
    assert isinstance(value, str | bytes)
    return (value.encode() if isinstance(value, str) else value).hex()


def to_text(value: object) -> str:
    """What %s writes."""
    write = _TEXTS.get(runtime_type(value).kind)
    return str(value) if write is None else write(value)


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelEvaluationError("format() cannot write bytes that are no UTF-8") from None


def _nested(value: object) -> str:
    """A value inside a list or map: quoted where CEL would quote it."""
    kind = runtime_type(value).kind
    if kind not in CLAUSES["s"]:
        raise CelEvaluationError(f"format() cannot write a value of type {runtime_type(value)} with %s")
    if isinstance(value, float):
        special = format_double(value) if math.isinf(value) or math.isnan(value) else None
        return _fixed(value, None) if special is None else _quoted(special)
    text = to_text(value)
    if isinstance(value, str):
        return _quoted(text)
    return f"b{_quoted(text)}" if isinstance(value, bytes) else text


def _entries(entries: dict[object, object]) -> list[str]:
    for key in entries:
        if not isinstance(key, str | int | Uint):
            raise CelEvaluationError(f"format() cannot write a map key of type {runtime_type(key)}")
    pairs = sorted((_nested(key), _nested(value)) for key, value in entries.items())
    return [f"{key}:{value}" for key, value in pairs]


def _quoted(text: str) -> str:
    return f'"{text if text.isprintable() and not _SPECIAL.search(text) else "".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    known = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", '"': '"'}
    if character in known:
        return "\\" + known[character]
    if character.isprintable():
        return character
    point = ord(character)
    return f"\\x{point:02x}" if point < 0x80 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


_WRITERS: dict[str, Callable[[object], str]] = {
    "s": to_text,
    "d": to_text,
    "b": lambda value: f"{value:b}",
    "x": _hexadecimal,
    "X": lambda value: _hexadecimal(value).upper(),
    "o": lambda value: f"{value:o}",
}
_TEXTS: dict[Kind, Callable[[Any], str]] = {
    Kind.NULL: lambda _: "null",
    Kind.BOOL: lambda value: "true" if value else "false",
    Kind.UINT: lambda value: str(int(value)),
    Kind.DOUBLE: format_double,
    Kind.BYTES: _decode,
    Kind.TIMESTAMP: format_timestamp,
    Kind.DURATION: format_duration,
    Kind.TYPE: lambda value: str(value.name),
    Kind.LIST: lambda value: f"[{', '.join(map(_nested, value))}]",
    Kind.MAP: lambda value: f"{{{', '.join(_entries(value))}}}",
}
