"""`int(…)`, `string(…)`, `type(…)` and the other conversions, with doubles as Go reads and writes them."""

from __future__ import annotations

import math
import re

from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.library.times import format_duration, format_timestamp, parse_duration, parse_timestamp
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.values import (
    INT_MAX,
    INT_MIN,
    NANOS,
    UINT_MAX,
    Timestamp,
    Uint,
    checked_int,
    checked_timestamp,
    checked_uint,
    runtime_type,
)

_DECIMAL = frozenset("0123456789+-.eE")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF+-.xXpP")
_SPECIAL = re.compile(r"[+-]?(?:inf|infinity)\Z|nan\Z", re.IGNORECASE)


def format_double(value: float) -> str:
    """Returns the fewest digits that give the same double; writes an exponent below -4 or above 5."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    digits, exponent = _shortest(abs(value))
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}{'.' + fraction if fraction else ''}"


def _shortest(value: float) -> tuple[str, int]:
    """The significant digits, and the power of ten of the first one."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    power = int(exponent or "0") + len(whole) - 1 - leading
    return (digits.rstrip("0") or "0"), (power if digits else 0)


def parse_double(text: str) -> float:
    """Raises `ValueError`."""
    if _SPECIAL.match(text):
        return float(text)
    plain = text.replace("_", "")
    if _DECIMAL.issuperset(plain):
        value = float(plain)
    elif _HEXADECIMAL.issuperset(plain) and "p" in plain.lower() and plain.lstrip("+-")[:2].lower() == "0x":
        try:
            value = float.fromhex(plain)
        except OverflowError:
            raise ValueError(text) from None
    else:
        raise ValueError(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
"""The conversions that the API server computes at compile time if their argument is a literal."""

_MOST_DIGITS = 20
_LONGEST_SHOWN = 100
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _no_conversion(value: str, to: str) -> CelEvaluationError:
    return CelEvaluationError(f"{value[:_LONGEST_SHOWN]!r} cannot be converted to {to}")


def _string_to_int(text: str) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    number = _whole(digits)
    if number is None or not INT_MIN <= (number if text[0] != "-" else -number) <= INT_MAX:
        raise _no_conversion(text, "int")
    return -number if text[0] == "-" else number


def _string_to_uint(text: str) -> Uint:
    number = _whole(text)
    if number is None or number > UINT_MAX:
        raise _no_conversion(text, "uint")
    return Uint(number)


def _whole(digits: str) -> int | None:
    """The number of up to 20 digits, which is all that 64 bits hold; zeros before them do not count."""
    if not (digits.isascii() and digits.isdigit()):
        return None
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _MOST_DIGITS else None


def _string_to_double(text: str) -> float:
    try:
        return parse_double(text)
    except ValueError:
        raise _no_conversion(text, "double") from None


def _string_to_bool(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise _no_conversion(text, "bool")
    return text in _TRUE


def _double_to_int(value: float) -> int:
    if not INT_MIN < value < INT_MAX:
        raise CelEvaluationError("integer overflow: the double does not fit 64 bits")
    return int(value)


def _double_to_uint(value: float) -> Uint:
    if not 0 <= value < UINT_MAX:
        raise CelEvaluationError("unsigned integer overflow: the double is negative or does not fit 64 bits")
    return Uint(value)


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelEvaluationError("the bytes are no UTF-8 and cannot be converted to string") from None


def _int_to_duration(_: int) -> None:
    raise CelEvaluationError("an int cannot be converted to duration; write duration('…s')")


def _timestamp_to_int(moment: Timestamp) -> int:
    return moment.nanos // NANOS


def _same(value: object) -> object:
    return value


OVERLOADS = [
    function("bool", "bool -> bool", _same),
    function("bool", "string -> bool", _string_to_bool),
    function("bytes", "bytes -> bytes", _same),
    function("bytes", "string -> bytes", str.encode),
    function("double", "double -> double", _same),
    function("double", "int -> double", float),
    function("double", "string -> double", _string_to_double),
    function("double", "uint -> double", float),
    function("duration", "duration -> duration", _same),
    function("duration", "int -> duration", _int_to_duration),
    function("duration", "string -> duration", parse_duration),
    function("dyn", "A -> dyn", _same),
    function("int", "int -> int", _same),
    function("int", "double -> int", _double_to_int),
    function("int", "duration -> int", lambda value: value.nanos),
    function("int", "string -> int", _string_to_int),
    function("int", "timestamp -> int", _timestamp_to_int),
    function("int", "uint -> int", lambda value: checked_int(int(value))),
    function("string", "string -> string", _same),
    function("string", "bool -> string", lambda value: "true" if value else "false"),
    function("string", "bytes -> string", _bytes_to_string),
    function("string", "double -> string", format_double),
    function("string", "duration -> string", format_duration),
    function("string", "int -> string", str),
    function("string", "timestamp -> string", format_timestamp),
    function("string", "uint -> string", lambda value: str(int(value))),
    function("timestamp", "timestamp -> timestamp", _same),
    function("timestamp", "int -> timestamp", lambda seconds: checked_timestamp(seconds * NANOS)),
    function("timestamp", "string -> timestamp", parse_timestamp),
    function("type", "A -> type(A)", runtime_type),
    function("uint", "uint -> uint", _same),
    function("uint", "double -> uint", _double_to_uint),
    function("uint", "int -> uint", checked_uint),
    function("uint", "string -> uint", _string_to_uint),
    *(
        overload
        for sized in ("bytes", "list(A)", "map(A, B)", "string")
        for overload in (function("size", f"{sized} -> int", len), method("size", f"{sized} -> int", len))
    ),
]
