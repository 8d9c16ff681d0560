"""Doubles as Go writes and reads them."""

from __future__ import annotations

import math
import re

_DECIMAL = frozenset("0123456789+-.eE")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF+-.xXpP")
_SPECIAL = re.compile(r"[+-]?(?:inf|infinity)\Z|nan\Z", re.IGNORECASE)


def format_double(value: float) -> str:
    """The fewest digits that give the same double; an exponent below -4 or above 5 is written out."""
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
