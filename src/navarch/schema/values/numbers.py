"""Bounds, multiples and formats of numbers, as the API server checks them.

Bounds reach the server as 64-bit floats. A bound that is no whole number on a field of type integer fails every value,
there as here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from navarch.schema.document import JsonSchema
from navarch.schema.values.violations import Violation, go_number, in_body

__all__ = ["LARGEST_INT", "SMALLEST_INT", "is_whole", "number_check"]

LARGEST_INT, SMALLEST_INT = (1 << 63) - 1, -(1 << 63)
_INT32 = 1 << 31
_SAFE = float((1 << 53) - 1)
_EPSILON = 1e-9
Check = Callable[[Any], list[Violation]]


def is_whole(number: float) -> bool:
    """Whether a float counts as an integer: as whole as floats can tell, and not beyond what they hold exactly.

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
    """Checks one number against `minimum`, `maximum`, `multipleOf` and `format`; None if there is nothing to check."""
    checks = [_range_check(json_type, schema.get("format"))]
    if schema.get("multipleOf") is not None:
        checks.append(_multiple_check(schema["multipleOf"], json_type))
    if schema.get("minimum") is not None:
        checks.append(
            _bound_check(schema["minimum"], json_type, "Minimum", exclusive=bool(schema.get("exclusiveMinimum")))
        )
    if schema.get("maximum") is not None:
        checks.append(
            _bound_check(schema["maximum"], json_type, "Maximum", exclusive=bool(schema.get("exclusiveMaximum")))
        )
    needed = [check for check in checks if check is not None]
    if len(needed) <= 1:
        return needed[0] if needed else None
    return lambda number: [violation for check in needed for violation in check(number)]


def _range_check(json_type: str | None, number_format: str | None) -> Check | None:
    if json_type == "integer":
        limit = _INT32 if number_format == "int32" else -SMALLEST_INT
        form = f"with format {number_format}" if number_format in {"int32", "int64"} else "(default format)"
        return _fitting(lambda number: _fits_integer(number, limit), f"integer {form}")
    if json_type == "number" and number_format == "float":
        return _fitting(_fits_float32, "number with format float")
    return None


def _fitting(fits: Callable[[float], bool], expected: str) -> Check:
    fault = f'Invalid value: "": Checked value must be of type {expected} in '
    return lambda number: [] if fits(number) else [Violation("FieldValueInvalid", fault, "")]


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


def _bound_check(bound: float, json_type: str | None, name: str, *, exclusive: bool) -> Check:
    below = name == "Minimum"
    relation = ("greater" if below else "less") + " than" + ("" if exclusive else " or equal to")
    senseless = json_type == "integer" and not float(bound).is_integer()

    def check(number: float) -> list[Violation]:
        limit = int(bound) if isinstance(number, int) and not senseless else bound
        broken = number < limit if below else number > limit
        found = [_unusable(f"{name} boundary")] if senseless else []
        if broken or (exclusive and number == limit):
            found.append(in_body(number, f"should be {relation} {go_number(limit)}"))
        return found

    return check


def _multiple_check(factor: float, json_type: str | None) -> Check:
    senseless = json_type == "integer" and not float(factor).is_integer()

    def check(number: float) -> list[Violation]:
        found = [_unusable("MultipleOf")] if senseless else []
        step = int(factor) if isinstance(number, int) and not senseless else factor
        if step <= 0:
            shown_step = go_number(step)
            head = f"Invalid value: {shown_step}: factor MultipleOf declared for "
            return [*found, Violation("FieldValueInvalid", head, f" must be positive: {shown_step}")]
        if not _is_multiple(number, step):
            found.append(in_body(number, f"should be a multiple of {go_number(step)}"))
        return found

    return check


def _is_multiple(number: float, step: float) -> bool:
    if isinstance(number, int) and isinstance(step, int):
        return number % step == 0
    return is_whole(1 / step * number if step < 1 else number / step)


def _unusable(keyword: str) -> Violation:
    return Violation(
        "FieldValueInvalid", f'Invalid value: "": {keyword} value must be of type integer (default format) in ', ""
    )
