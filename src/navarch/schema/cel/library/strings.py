"""Methods of strings, with `format`. Positions count characters, not bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from navarch.api.strconv import go_quoted
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.library.conversions import format_double
from navarch.schema.cel.library.times import format_duration, format_timestamp
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelKind
from navarch.schema.cel.values import Uint, runtime_type


def _escaped_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


PATCH_OVERLOADS = (function("jsonpatch.escapeKey", "string -> string", _escaped_key),)


CLAUSES: dict[str, frozenset[CelKind]] = {
    "s": frozenset(CelKind) - {CelKind.OBJECT, CelKind.OPAQUE, CelKind.PARAMETER},
    "d": frozenset({CelKind.INT, CelKind.UINT}),
    "f": frozenset({CelKind.DOUBLE, CelKind.STRING}),
    "e": frozenset({CelKind.DOUBLE, CelKind.STRING}),
    "b": frozenset({CelKind.INT, CelKind.UINT, CelKind.BOOL}),
    "x": frozenset({CelKind.INT, CelKind.UINT, CelKind.STRING, CelKind.BYTES}),
    "X": frozenset({CelKind.INT, CelKind.UINT, CelKind.STRING, CelKind.BYTES}),
    "o": frozenset({CelKind.INT, CelKind.UINT}),
}
"""The types that each clause accepts."""

_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?([A-Za-z]))|%")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NAMED_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DEFAULT_PRECISION = 6
_MOST_PRECISION_DIGITS = 3
_LONGEST_SHOWN = 100


def clauses(template: str) -> Iterator[tuple[str, int | None, re.Match[str]]]:
    """Yields each clause with its precision; `%` stands for itself. Raises `ValueError` for an unknown clause."""
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
    """Returns the text that %s writes."""
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
        return _fixed(value, None) if special is None else go_quoted(special)
    text = to_text(value)
    if isinstance(value, str):
        return go_quoted(text)
    return f"b{go_quoted(text)}" if isinstance(value, bytes) else text


def _entries(entries: dict[object, object]) -> list[str]:
    for key in entries:
        if not isinstance(key, str | int | Uint):
            raise CelEvaluationError(f"format() cannot write a map key of type {runtime_type(key)}")
    pairs = sorted((_nested(key), _nested(value)) for key, value in entries.items())
    return [f"{key}:{value}" for key, value in pairs]


_WRITERS: dict[str, Callable[[object], str]] = {
    "s": to_text,
    "d": to_text,
    "b": lambda value: f"{value:b}",
    "x": _hexadecimal,
    "X": lambda value: _hexadecimal(value).upper(),
    "o": lambda value: f"{value:o}",
}
_TEXTS: dict[CelKind, Callable[[Any], str]] = {
    CelKind.NULL: lambda _: "null",
    CelKind.BOOL: lambda value: "true" if value else "false",
    CelKind.UINT: lambda value: str(int(value)),
    CelKind.DOUBLE: format_double,
    CelKind.BYTES: _decode,
    CelKind.TIMESTAMP: format_timestamp,
    CelKind.DURATION: format_duration,
    CelKind.TYPE: lambda value: str(value.name),
    CelKind.LIST: lambda value: f"[{', '.join(map(_nested, value))}]",
    CelKind.MAP: lambda value: f"{{{', '.join(_entries(value))}}}",
}


_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000"
)
_QUOTED = {
    "\\": "\\\\",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def _out_of_range(index: int) -> CelEvaluationError:
    return CelEvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    """Searched backwards: `str.find` takes time by the length of the text, `str.rfind` by that of both multiplied."""
    found = text[::-1].find(part[::-1])
    return found if found < 0 else len(text) - len(part) - found


def _last_index_before(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return _last_index_of(text[: start + len(part)], part) if start < len(text) else -1


def _substring(text: str, start: int) -> str:
    return _substring_to(text, start, max(start, len(text)))


def _substring_to(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelEvaluationError(f"invalid substring range: it starts at {start} and ends at {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    """At most `limit` parts; all of them if it is negative."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit > len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, max(limit, -1))


def _join(items: list[object], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise CelEvaluationError("join() takes strings only")
    return separator.join(map(str, items))


def _quote(text: str) -> str:
    for character, written in _QUOTED.items():  # the backslash first, since it is what the others are written with
        text = text.replace(character, written)
    return f'"{text}"'


OVERLOADS = [
    method("contains", "string, string -> bool", str.__contains__),
    method("startsWith", "string, string -> bool", str.startswith),
    method("endsWith", "string, string -> bool", str.endswith),
    method("charAt", "string, int -> string", _char_at),
    method("indexOf", "string, string -> int", _index_of),
    method("indexOf", "string, string, int -> int", _index_of),
    method("lastIndexOf", "string, string -> int", _last_index_of),
    method("lastIndexOf", "string, string, int -> int", _last_index_before),
    method("lowerAscii", "string -> string", lambda text: text.encode().lower().decode()),
    method("upperAscii", "string -> string", lambda text: text.encode().upper().decode()),
    method("replace", "string, string, string -> string", _replace),
    method("replace", "string, string, string, int -> string", _replace),
    method("split", "string, string -> list(string)", _split),
    method("split", "string, string, int -> list(string)", _split),
    method("substring", "string, int -> string", _substring),
    method("substring", "string, int, int -> string", _substring_to),
    method("trim", "string -> string", lambda text: text.strip(_SPACES)),
    method("format", "string, list(dyn) -> string", format_string),
    method("join", "list(string) -> string", _join),
    method("join", "list(string), string -> string", _join),
    function("strings.quote", "string -> string", _quote),
]
