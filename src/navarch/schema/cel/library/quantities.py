"""Quantities, such as 500m or 2Gi, and semantic versions."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from typing import ClassVar

from navarch.api.quantity import Quantity
from navarch.errors import InvalidValueError
from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelType
from navarch.schema.cel.values import INT_MAX, INT_MIN, UINT_MAX

_NUMBER = r"(0|[1-9][0-9]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z"
)
_LEADING_ZEROS = re.compile(r"0+(?=[0-9])")


@dataclass(frozen=True, slots=True)
class Semver:
    cel_type: ClassVar[CelType] = types.SEMVER
    numbers: tuple[int, int, int]
    prerelease: tuple[int | str, ...]
    build: str = field(compare=False)

    def rank(self) -> tuple[object, ...]:
        """Orders numbers before words, and every prerelease before the release."""
        words = tuple((isinstance(part, str), part) for part in self.prerelease)
        return self.numbers, not words, words


def _parse(text: str) -> Semver:
    """Raises `ValueError`."""
    match = _VERSION.match(text)
    numbers = tuple(int(match[group]) for group in (1, 2, 3)) if match else ()
    if match is None or max(numbers) > UINT_MAX:
        raise ValueError(text)
    parts = tuple(_prerelease_part(part) for part in match[4].split(".")) if match[4] else ()
    return Semver((numbers[0], numbers[1], numbers[2]), parts, match[5] or "")


def _prerelease_part(part: str) -> int | str:
    if not part.isdigit():
        return part
    if len(part) > 1 and part.startswith("0"):
        raise ValueError(part)
    return int(part)


def _normalized(text: str) -> str:
    """Without a leading v and leading zeros, and with three numbers. Raises `ValueError`."""
    parts = [_LEADING_ZEROS.sub("", part, count=1) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise ValueError(text)
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _semver(text: str, normalize: bool = False) -> Semver:
    try:
        return _parse(_normalized(text) if normalize else text)
    except ValueError:
        raise CelEvaluationError(f"{text!r} is no semantic version; expected one such as 1.2.3-rc.1") from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _parse(_normalized(text) if normalize else text)
    except ValueError:
        return False
    return True


def _compare_versions(left: Semver, right: Semver) -> int:
    first, second = left.rank(), right.rank()
    return (first > second) - (first < second)


def _as_int(number: int) -> int:
    """The API server lets an unsigned number run over into the negative ones."""
    return number - (1 << 64) if number >= 1 << 63 else number


_SEMVER_OVERLOADS = [
    function("semver", "string -> semver", _semver),
    function("semver", "string, bool -> semver", _semver),
    function("isSemver", "string -> bool", _is_semver),
    function("isSemver", "string, bool -> bool", _is_semver),
    method("isGreaterThan", "semver, semver -> bool", lambda left, right: _compare_versions(left, right) > 0),
    method("isLessThan", "semver, semver -> bool", lambda left, right: _compare_versions(left, right) < 0),
    method("compareTo", "semver, semver -> int", _compare_versions),
    method("major", "semver -> int", lambda version: _as_int(version.numbers[0])),
    method("minor", "semver -> int", lambda version: _as_int(version.numbers[1])),
    method("patch", "semver -> int", lambda version: _as_int(version.numbers[2])),
]


_DIGITS = "0123456789"
_DECIMAL_EXPONENTS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity and the power of ten of its unit; None if the API server uses big decimals for it.

    `isInteger()` depends on that power and not on the amount: 1000m counts thousandths, so it is no integer.
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
    *_SEMVER_OVERLOADS,
]
