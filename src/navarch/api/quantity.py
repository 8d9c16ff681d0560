"""Amounts of a resource, as Kubernetes reads, computes and writes them.

The reading and the canonical form follow `k8s.io/apimachinery/pkg/api/resource`, with its habits: a text that Go takes
for canonical already ("+5", "1.500") goes out as it came in, a lone sign or suffix ("m") is zero, and a value with a
binary suffix is capped at 2^63-1. Two of its habits are not followed, because they lose the value: beyond the largest
suffix the number is written out in full ("1000E", where Go writes "1"), and no property overflows 64 bits.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal, DecimalException, Inexact, InvalidOperation
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Final, Self

from navarch.errors import InvalidValueError


class _SuffixFamily(Enum):
    """The suffixes of an amount; a result is written with those of its left side."""

    DECIMAL = "decimal"
    BINARY = "binary"
    EXPONENT = "exponent"


_DECIMAL_SUFFIXES: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LARGEST_DECIMAL_EXPONENT: Final = 18
_SUFFIXES: Final = {
    **{suffix: (_SuffixFamily.DECIMAL, exponent) for exponent, suffix in _DECIMAL_SUFFIXES.items()},
    **{suffix: (_SuffixFamily.BINARY, 10 * power) for power, suffix in enumerate(_BINARY_SUFFIXES) if suffix},
}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,19})")

_DIGITS: Final = "0123456789"
_USUAL_LENGTH: Final = 64
_LONGEST: Final = 1024
"""The most digits of a number. Go has no limit, but a longer number is no amount of anything."""
_NANO: Final = Decimal("1e-9")
_MILLI_EXPONENT: Final = -3
_NANO_EXPONENT: Final = -9
_LARGEST_BINARY: Final = Decimal(2**63 - 1)
# Go takes any 32-bit exponent, and can be made to compute for minutes with one.
_EXPONENT_LIMIT: Final = 4096
# Exact or refused: a result that does not fit is an error, never rounded.
_EXACT: Final = Context(prec=16_384, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_UP, traps=[Inexact, InvalidOperation])
_ROUNDING_UP: Final = Context(prec=16_384, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_UP, traps=[InvalidOperation])
# How many digits Go's quick reading holds in 64 bits.
_QUICK_DECIMAL_DIGITS: Final = 18
_QUICK_BINARY_DIGITS: Final = 14


def _invalid(got: object) -> InvalidValueError:
    return InvalidValueError(
        f"expected a quantity, got {got!r}; write a number with an optional suffix, such as 250m, 1.5, 2Gi, 10M or 1e3"
    )


@total_ordering
class Quantity:
    """An exact, immutable amount of a resource: `Quantity("1.5Gi")`, `Quantity(3)`, `Quantity(Decimal("0.1"))`.

    Equal when the amounts are equal, whatever the suffix; also comparable with int. Sums keep the suffixes of their
    left side. Raises InvalidValueError for a text that is no quantity.

    >>> Quantity("1.5Gi") + Quantity("512Mi")
    Quantity('2Gi')
    >>> Quantity("1.5").milli_value, str(Quantity("1.5")), Quantity("1000m") == 1
    (1500, '1500m', True)
    """

    __slots__ = ("_family", "_number", "_text")

    _text: str | None
    _number: Decimal
    _family: _SuffixFamily

    def __init__(self, value: str | float | Decimal) -> None:
        self._text, self._number, self._family = _read(_as_text(value))

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """Returns the quantity of a JSON string or number; ignores space around it, as the API server does.

        >>> Quantity.from_wire(" 2000m ")
        Quantity('2')
        """
        if isinstance(value, str):
            return cls(value.strip())
        if isinstance(value, int | float):
            return cls(value)
        raise _invalid(value)

    def to_wire(self) -> str:
        """Returns the canonical form, as the API server answers it.

        >>> Quantity("0.5").to_wire()
        '500m'
        """
        return str(self)

    @property
    def decimal(self) -> Decimal:
        """The exact amount.

        >>> Quantity("100m").decimal
        Decimal('0.1')
        """
        return self._number

    @property
    def value(self) -> int:
        """The amount as a whole number, rounded away from zero.

        >>> Quantity("1500m").value
        2
        """
        return int(self._number.to_integral_value(ROUND_UP))

    @property
    def milli_value(self) -> int:
        """The amount in thousandths, rounded away from zero.

        >>> Quantity("1.5").milli_value
        1500
        """
        return int(self._number.scaleb(-_MILLI_EXPONENT, _EXACT).to_integral_value(ROUND_UP))

    def __str__(self) -> str:
        if self._text is None:
            self._text = _canonical(self._number, self._family)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self._number)

    def __bool__(self) -> bool:
        return bool(self._number)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity):
            return self._number == other._number
        return self._number == other if isinstance(other, int) else NotImplemented

    def __lt__(self, other: Quantity | int) -> bool:
        if not isinstance(other, Quantity | int):
            return NotImplemented
        return self._number < (other._number if isinstance(other, Quantity) else other)

    def __add__(self, other: Quantity | int) -> Quantity:
        if not isinstance(other, Quantity | int):
            return NotImplemented
        right = other if isinstance(other, Quantity) else Quantity(other)
        return _computed(_EXACT.add(self._number, right._number), self._family if self else right._family)

    def __radd__(self, other: int) -> Quantity:
        return Quantity(other) + self

    def __sub__(self, other: Quantity | int) -> Quantity:
        if not isinstance(other, Quantity | int):
            return NotImplemented
        right = other if isinstance(other, Quantity) else Quantity(other)
        return _computed(_EXACT.subtract(self._number, right._number), self._family if self else right._family)

    def __rsub__(self, other: int) -> Quantity:
        return Quantity(other) - self

    def __mul__(self, factor: int | Decimal) -> Quantity:
        if not isinstance(factor, int | Decimal):
            return NotImplemented
        return _computed(_EXACT.multiply(self._number, factor), self._family)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return _computed(_EXACT.minus(self._number), self._family)

    def __abs__(self) -> Quantity:
        return -self if self._number < 0 else self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _as_text(value: str | float | Decimal) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _invalid(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}" if abs(value.adjusted()) <= _EXPONENT_LIMIT else str(value)
    return repr(value)


def _computed(number: Decimal, family: _SuffixFamily) -> Quantity:
    if not number.is_finite():
        raise _invalid(number)
    quantity = Quantity.__new__(Quantity)
    quantity._text, quantity._number, quantity._family = None, _rounded(number), family  # noqa: SLF001 - its own factory
    return quantity


def _read(text: str) -> tuple[str | None, Decimal, _SuffixFamily]:
    """Returns the text to write (None if it is not canonical), the amount, and the suffixes."""
    if len(text) <= _USUAL_LENGTH:
        return _read_usual(text)
    if len(text) > _LONGEST:
        raise InvalidValueError(f"expected a quantity of at most {_LONGEST} characters, got {len(text)}")
    return _parse(text)


@lru_cache(maxsize=4096)
def _read_usual(text: str) -> tuple[str | None, Decimal, _SuffixFamily]:
    return _parse(text)


def _parts(text: str) -> tuple[str, str, str, str, str]:
    """Splits the text into the sign, leading zeros, other digits, the digits of the fraction, and the suffix, in one
    pass.
    """
    sign = text[:1] if text[:1] in {"+", "-"} else ""
    unsigned = text[len(sign) :]
    without_zeros = unsigned.lstrip("0")
    rest = without_zeros.lstrip(_DIGITS)
    suffix = rest[1:].lstrip(_DIGITS) if rest.startswith(".") else rest
    zeros, digits = unsigned[: len(unsigned) - len(without_zeros)], without_zeros[: len(without_zeros) - len(rest)]
    return sign, zeros, digits, rest[1 : len(rest) - len(suffix)], suffix


def _parse(text: str) -> tuple[str | None, Decimal, _SuffixFamily]:
    if not text:
        raise _invalid(text)
    sign, zeros, digits, fraction, suffix = _parts(text)
    family, exponent = _suffix(suffix, text)
    whole = digits or "0"
    quick = _is_quick(whole, fraction, family, exponent)
    if not (quick or zeros or digits or fraction):
        raise _invalid(text)
    try:
        number = _rounded(_scaled(Decimal(f"{sign}{whole}.{fraction or 0}"), family, exponent))
    except DecimalException as error:
        raise _invalid(text) from error
    if family is _SuffixFamily.BINARY and 0 < abs(number) < 1:
        family = _SuffixFamily.DECIMAL
    return text if quick and _is_kept(whole, fraction, family, exponent) else None, number, family


def _suffix(suffix: str, text: str) -> tuple[_SuffixFamily, int]:
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise _invalid(text)
    power = int(exponent.group(1))
    if abs(power) > _EXPONENT_LIMIT:
        raise InvalidValueError(f"expected a quantity with an exponent within {_EXPONENT_LIMIT}, got {text!r}")
    return _SuffixFamily.EXPONENT, power


def _scaled(number: Decimal, family: _SuffixFamily, exponent: int) -> Decimal:
    if family is not _SuffixFamily.BINARY:
        return number.scaleb(exponent, _EXACT)
    scaled = _EXACT.multiply(number, 2**exponent)
    return max(-_LARGEST_BINARY, min(_LARGEST_BINARY, scaled))


def _rounded(number: Decimal) -> Decimal:
    """Removes trailing zeros and rounds away from zero to the nearest nano: a small request never becomes zero."""
    if not number:
        return Decimal(0)
    if number.adjusted() < _NANO_EXPONENT:
        return _NANO.copy_sign(number)
    nanos = _ROUNDING_UP.quantize(number, _NANO)
    whole = nanos.to_integral_value()
    return whole if whole == nanos else nanos.normalize(_EXACT)


def _is_quick(whole: str, fraction: str, family: _SuffixFamily, exponent: int) -> bool:
    """Returns True if Go reads the digits into 64 bits at once; only then can it keep a text, or accept one without
    digits.
    """
    if family is _SuffixFamily.BINARY:
        return not fraction and len(whole) + exponent * 3 // 10 <= _QUICK_BINARY_DIGITS
    return len(whole + fraction) <= _QUICK_DECIMAL_DIGITS and exponent - len(fraction) >= _NANO_EXPONENT


def _is_kept(whole: str, fraction: str, family: _SuffixFamily, exponent: int) -> bool:
    """Returns True if Go takes the text for canonical without computing the canonical form."""
    if family is _SuffixFamily.BINARY:
        return int(whole) % 8 != 0
    digits = whole + fraction
    return (exponent - len(fraction)) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _canonical(number: Decimal, family: _SuffixFamily) -> str:
    """Returns the form without a fraction, with the largest suffix that allows it."""
    if not number:
        return "0"
    if family is _SuffixFamily.BINARY and abs(number) >= 1024 and number == number.to_integral_value():
        return _with_binary_suffix(int(number))
    mantissa, exponent = _in_thousands(number)
    if family is _SuffixFamily.EXPONENT:
        return f"{mantissa}e{exponent}" if exponent else mantissa
    excess = max(0, exponent - _LARGEST_DECIMAL_EXPONENT)
    return f"{mantissa}{'0' * excess}{_DECIMAL_SUFFIXES[exponent - excess]}"


def _with_binary_suffix(amount: int) -> str:
    power = 0
    while amount % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        amount, power = amount // 1024, power + 1
    return f"{amount}{_BINARY_SUFFIXES[power]}"


def _in_thousands(number: Decimal) -> tuple[str, int]:
    """Returns the digits of a whole mantissa, and the largest exponent divisible by three."""
    exponent = number.normalize(_EXACT).as_tuple().exponent
    assert isinstance(exponent, int)  # only infinities and NaN have another
    exponent -= exponent % 3
    return f"{number.scaleb(-exponent, _EXACT):.0f}", exponent
