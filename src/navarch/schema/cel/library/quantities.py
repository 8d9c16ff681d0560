"""Amounts of a resource, such as 500m or 2Gi."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import ClassVar

from navarch.api.quantity import Quantity
from navarch.errors import InvalidValueError
from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelType
from navarch.schema.cel.values import INT_MAX, INT_MIN

_DIGITS = "0123456789"
_DECIMAL_EXPONENTS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity and the power of ten it is counted in, or None if the API server counts it in big decimals.

    `isInteger()` is about that power rather than the amount: 1000m is counted in thousandths, so it is no integer.
    """

    cel_type: ClassVar[CelType] = types.QUANTITY
    quantity: Quantity
    scale: int | None = field(compare=False)


def _scale(text: str) -> int | None:
    whole, fraction, suffix, exponent = _parts(text)
    if suffix in _BINARY_EXPONENTS:
        digits = 15 - len(whole) - int(_BINARY_EXPONENTS[suffix] * 3 / 10) - 1
        return 0 if not fraction and digits >= 0 else None
    if len(whole) + len(fraction) > 18:
        return None
    power = int(exponent) if suffix in {"e", "E"} and exponent else _DECIMAL_EXPONENTS[suffix]
    return power - len(fraction) if power - len(fraction) >= -9 else None


def _parts(text: str) -> tuple[str, str, str, str]:
    """The digits before and after the point, the suffix, and the exponent of what is a quantity."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    significant = unsigned.lstrip("0")
    rest = significant.lstrip(_DIGITS)
    behind = rest.removeprefix(".").lstrip(_DIGITS)
    exponent = behind.lstrip(string.ascii_letters)
    fraction = rest.removeprefix(".")
    return (
        significant[: len(significant) - len(rest)],
        fraction[: len(fraction) - len(behind)],
        behind[: len(behind) - len(exponent)],
        exponent,
    )


def _quantity(text: str) -> Amount:
    try:
        return Amount(Quantity(text), _scale(text))
    except InvalidValueError:
        raise CelEvaluationError(f"{text!r} is no quantity; expected one such as 500m, 1.5 or 2Gi") from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity(text)
    except InvalidValueError:
        return False
    return True


def _is_integer(amount: Amount) -> bool:
    return amount.scale is not None and amount.scale >= 0 and INT_MIN <= amount.quantity.decimal <= INT_MAX


def _as_integer(amount: Amount) -> int:
    if not _is_integer(amount):
        raise CelEvaluationError(f"{amount.quantity} is not counted in whole numbers; test it with isInteger()")
    return int(amount.quantity.decimal)


def _compare(left: Amount, right: Amount) -> int:
    return (left.quantity > right.quantity) - (left.quantity < right.quantity)


def _add(left: Amount, right: Amount) -> Amount:
    return Amount(left.quantity + right.quantity, _common_scale(left, right))


def _subtract(left: Amount, right: Amount) -> Amount:
    return Amount(left.quantity - right.quantity, _common_scale(left, right))


def _common_scale(left: Amount, right: Amount) -> int | None:
    if not left.quantity or not right.quantity:
        return (left if right.quantity == 0 else right).scale
    return None if left.scale is None or right.scale is None else min(left.scale, right.scale)


def _whole(number: int) -> Amount:
    return Amount(Quantity(number), 0)


OVERLOADS = [
    function("quantity", "string -> quantity", _quantity),
    function("isQuantity", "string -> bool", _is_quantity),
    function("sign", "quantity -> int", lambda amount: _compare(amount, _whole(0))),
    method("isGreaterThan", "quantity, quantity -> bool", lambda left, right: left.quantity > right.quantity),
    method("isLessThan", "quantity, quantity -> bool", lambda left, right: left.quantity < right.quantity),
    method("compareTo", "quantity, quantity -> int", _compare),
    method("asApproximateFloat", "quantity -> double", lambda amount: float(amount.quantity.decimal)),
    method("asInteger", "quantity -> int", _as_integer),
    method("isInteger", "quantity -> bool", _is_integer),
    method("add", "quantity, quantity -> quantity", _add),
    method("add", "quantity, int -> quantity", lambda amount, number: _add(amount, _whole(number))),
    method("sub", "quantity, quantity -> quantity", _subtract),
    method("sub", "quantity, int -> quantity", lambda amount, number: _subtract(amount, _whole(number))),
]
