"""Bounds, multiples and formats of numbers, as the API server checks them.

Bounds reach the server as 64-bit floats. A bound that does not fit the type and format of its field fails every value,
there as here; one that is beyond 64-bit integers is the smallest of them to a value that is an integer.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from navarch.schema.json_schema import JsonSchema
from navarch.schema.values.violations import SchemaViolation, go_number, in_body

LARGEST_INT, SMALLEST_INT = (1 << 63) - 1, -(1 << 63)
_INT32 = 1 << 31
_SAFE = float((1 << 53) - 1)
_EPSILON = 1e-9
Check = Callable[[Any], list[SchemaViolation]]


def is_whole(number: float) -> bool:
    """Returns True if a float counts as an integer: whole, and within the range that floats hold exactly.

    >>> is_whole(3.0), is_whole(3.5), is_whole(1e30)
    (True, False, False)
    """
    if not -_SAFE <= number <= _SAFE:
        return False
    if number == int(number):
        return True
    nearest = float(int(number)) if number > 0 else 0.0
    if nearest == 0.0:
        return False
    return abs(number - nearest) / (abs(number) + nearest) < _EPSILON


def number_check(schema: JsonSchema, json_type: str | None) -> Check | None:
    """Returns a check of `minimum`, `maximum`, `multipleOf` and `format`; None if there is nothing to check."""
    allowed = _range(json_type, schema.get("format"))
    checks = [] if allowed is None else [_range_check(allowed)]
    if schema.get("multipleOf") is not None:
        checks.append(_multiple_check(schema["multipleOf"], allowed))
    for keyword in ("minimum", "maximum"):
        if schema.get(keyword) is not None:
            exclusive = bool(schema.get(f"exclusive{keyword.capitalize()}"))
            checks.append(_bound_check(schema[keyword], allowed, keyword.capitalize(), exclusive=exclusive))
    if len(checks) <= 1:
        return checks[0] if checks else None
    return lambda number: [violation for check in checks for violation in check(number)]


@dataclass(frozen=True, slots=True)
class _Range:
    """Which numbers a type and format can hold, and what the server calls them."""

    name: str
    fits: Callable[[float], bool]

    def fault(self, what: str) -> SchemaViolation:
        return SchemaViolation(
            "FieldValueInvalid", f'Invalid value: "": {what} value must be of type {self.name} in ', ""
        )


def _range(json_type: str | None, number_format: str | None) -> _Range | None:
    if json_type == "integer":
        limit = _INT32 if number_format == "int32" else -SMALLEST_INT
        form = f"with format {number_format}" if number_format in {"int32", "int64"} else "(default format)"
        return _Range(f"integer {form}", lambda number: _fits_integer(number, limit))
    if json_type == "number" and number_format == "float":
        return _Range("number with format float", _fits_float32)
    return None


def holds(json_type: str | None, number_format: str | None, bound: float) -> bool:
    """Returns True if any value of a type and format can satisfy the bound.

    >>> holds("integer", "int64", 2**62), holds("integer", "int64", 2**63 - 1), holds("number", None, 2**63)
    (True, False, False)
    """
    allowed = _range(json_type, number_format)
    return float(bound) < -SMALLEST_INT and (allowed is None or allowed.fits(float(bound)))


def _range_check(allowed: _Range) -> Check:
    return lambda number: [] if allowed.fits(number) else [allowed.fault("Checked")]


def _fits_integer(number: float, limit: int) -> bool:
    """The server reads the number back from its shortest text, which for large floats is another number."""
    if isinstance(number, int):
        return -limit <= number < limit
    return math.isfinite(number) and number.is_integer() and -limit <= int(Decimal(repr(number))) < limit


def _fits_float32(number: float) -> bool:
    try:
        return math.isfinite(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return False


def _bound_check(bound: float, allowed: _Range | None, name: str, *, exclusive: bool) -> Check:
    below = name == "Minimum"
    relation = ("greater" if below else "less") + " than" + ("" if exclusive else " or equal to")
    misfit = allowed if allowed and not allowed.fits(float(bound)) else None

    def check(number: float) -> list[SchemaViolation]:
        found = [misfit.fault(f"{name} boundary")] if misfit else []
        number, limit = _comparable(number, bound, as_floats=misfit is not None)
        broken = number < limit if below else number > limit
        if broken or (exclusive and number == limit):
            found.append(in_body(number, f"should be {relation} {go_number(limit)}"))
        return found

    return check


def _multiple_check(factor: float, allowed: _Range | None) -> Check:
    misfit = allowed if allowed and not allowed.fits(float(factor)) else None

    def check(number: float) -> list[SchemaViolation]:
        found = [misfit.fault("MultipleOf")] if misfit else []
        number, step = _comparable(number, factor, as_floats=misfit is not None)
        if step <= 0:
            shown_step = go_number(step)
            head = f"Invalid value: {shown_step}: factor MultipleOf declared for "
            return [*found, SchemaViolation("FieldValueInvalid", head, f" must be positive: {shown_step}")]
        if not _is_multiple(number, step):
            found.append(in_body(number, f"should be a multiple of {go_number(step)}"))
        return found

    return check


def _comparable(number: float, bound: float, *, as_floats: bool) -> tuple[float, float]:
    """A value and its bound as the server compares them: as integers, if the value is one."""
    if as_floats:
        return float(number), float(bound)
    return number, _as_int64(bound) if isinstance(number, int) else bound


def _as_int64(bound: float) -> int:
    whole = int(float(bound))
    return whole if SMALLEST_INT <= whole <= LARGEST_INT else SMALLEST_INT


def _is_multiple(number: float, step: float) -> bool:
    if isinstance(number, int) and isinstance(step, int):
        return number % step == 0
    return is_whole(1 / step * number if step < 1 else number / step)
