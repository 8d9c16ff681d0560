"""Durations as Go writes them: metav1.Duration."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache, total_ordering
from typing import Final, Self

from navarch.errors import InvalidValueError

_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": _MICROSECOND,
    "µs": _MICROSECOND,  # U+00B5, the micro sign
    "μs": _MICROSECOND,  # U+03BC, the Greek letter, which Go takes too
    "ms": _MILLISECOND,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_TERM: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_MOST_DIGITS: Final = 19
_USUAL_LENGTH: Final = 64
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1


def _invalid(got: object) -> InvalidValueError:
    return InvalidValueError(
        f"expected a duration, got {got!r}; write numbers with units, such as 1h30m, 1.5s or 300ms"
    )


def _too_long(got: object) -> InvalidValueError:
    return InvalidValueError(f"expected a duration within 292 years, got {got!r}; use a shorter one")


@total_ordering
class Duration:
    """An exact, immutable duration: `Duration("1h30m")`, `Duration(timedelta(minutes=90))`.

    Holds nanoseconds in 64 bits, about 292 years either way. Raises InvalidValueError for text that is no duration, and
    for a result that does not fit.

    >>> Duration("90m"), Duration("1.5h") == Duration("90m"), Duration("1m") * 2
    (Duration('1h30m0s'), True, Duration('2m0s'))
    """

    __slots__ = ("_nanoseconds",)

    _nanoseconds: int

    def __init__(self, value: str | timedelta) -> None:
        if isinstance(value, str):
            self._nanoseconds = _read(value)
        elif isinstance(value, timedelta):
            self._nanoseconds = _within_bounds(value // timedelta(microseconds=1) * _MICROSECOND, value)
        else:
            raise _invalid(value)

    @classmethod
    def of_nanoseconds(cls, count: int) -> Self:
        """Returns the duration of so many nanoseconds.

        >>> Duration.of_nanoseconds(1_500_000)
        Duration('1.5ms')
        """
        duration = cls.__new__(cls)
        duration._nanoseconds = _within_bounds(count, count)  # noqa: SLF001 - its own factory
        return duration

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """Returns the duration that a JSON string holds; raises for a number, as the API server does.

        >>> Duration.from_wire("60s")
        Duration('1m0s')
        """
        if not isinstance(value, str):
            raise _invalid(value)
        return cls(value)

    def to_wire(self) -> str:
        """Returns the text that Go prints.

        >>> Duration("1h").to_wire()
        '1h0m0s'
        """
        return str(self)

    @property
    def nanoseconds(self) -> int:
        """The duration in nanoseconds.

        >>> Duration("1us").nanoseconds
        1000
        """
        return self._nanoseconds

    @property
    def timedelta(self) -> timedelta:
        """The duration for datetime arithmetic, truncated to microseconds.

        >>> Duration("-1.0000019s").timedelta.total_seconds()
        -1.000001
        """
        microseconds = abs(self._nanoseconds) // _MICROSECOND
        return timedelta(microseconds=microseconds if self._nanoseconds > 0 else -microseconds)

    def total_seconds(self) -> float:
        """Returns the duration in seconds, as the nearest float.

        >>> Duration("1.5s").total_seconds()
        1.5
        """
        return self._nanoseconds / _SECOND

    def __str__(self) -> str:
        return _written(self._nanoseconds)

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self._nanoseconds)

    def __bool__(self) -> bool:
        return self._nanoseconds != 0

    def __eq__(self, other: object) -> bool:
        return self._nanoseconds == other._nanoseconds if isinstance(other, Duration) else NotImplemented

    def __lt__(self, other: Duration) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self._nanoseconds < other._nanoseconds

    def __add__(self, other: Duration) -> Duration:
        if not isinstance(other, Duration):
            return NotImplemented
        return Duration.of_nanoseconds(self._nanoseconds + other._nanoseconds)

    def __sub__(self, other: Duration) -> Duration:
        if not isinstance(other, Duration):
            return NotImplemented
        return Duration.of_nanoseconds(self._nanoseconds - other._nanoseconds)

    def __mul__(self, factor: int) -> Duration:
        if not isinstance(factor, int):
            return NotImplemented
        return Duration.of_nanoseconds(self._nanoseconds * factor)

    __rmul__ = __mul__

    def __truediv__(self, other: Duration) -> float:
        if not isinstance(other, Duration):
            return NotImplemented
        return self._nanoseconds / other._nanoseconds

    def __neg__(self) -> Duration:
        return Duration.of_nanoseconds(-self._nanoseconds)

    def __abs__(self) -> Duration:
        return Duration.of_nanoseconds(abs(self._nanoseconds))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _within_bounds(nanoseconds: int, got: object) -> int:
    if not _SMALLEST <= nanoseconds <= _LARGEST:
        raise _too_long(got)
    return nanoseconds


def _read(text: str) -> int:
    return _read_usual(text) if len(text) <= _USUAL_LENGTH else _parse(text)


@lru_cache(maxsize=1024)
def _read_usual(text: str) -> int:
    return _parse(text)


def _parse(text: str) -> int:
    negative, unsigned = text.startswith("-"), text[1:] if text[:1] in {"-", "+"} else text
    if unsigned == "0":
        return 0
    total, position = 0, 0
    while position < len(unsigned):
        term = _TERM.match(unsigned, position)
        if term is None:
            raise _invalid(text)
        total, position = total + _term(term, text), term.end()
    if position == 0:
        raise _invalid(text)
    return _within_bounds(-total if negative else total, text)


def _term(term: re.Match[str], text: str) -> int:
    """Returns the nanoseconds of one number with its unit."""
    whole, fraction, unit = term.group(1), term.group(2) or "", _UNITS.get(term.group(3))
    if unit is None or not (whole or fraction):
        raise _invalid(text)
    if len(whole.lstrip("0")) > _MOST_DIGITS:
        raise _too_long(text)
    return int(whole.lstrip("0") or "0") * unit + _fraction(fraction, unit)


def _fraction(digits: str, unit: int) -> int:
    """Computes in floating point, truncates, and ignores digits beyond 64 bits: so the last nanosecond equals Go's."""
    numerator, scale = 0, 1.0
    for digit in digits:
        longer = numerator * 10 + int(digit)
        if numerator > _LARGEST // 10 or longer > _LARGEST + 1:
            break
        numerator, scale = longer, scale * 10
    return int(float(numerator) * (float(unit) / scale))


def _written(nanoseconds: int) -> str:
    sign, amount = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    if amount == 0:
        return "0s"
    if amount < _MICROSECOND:
        return f"{sign}{amount}ns"
    if amount < _MILLISECOND:
        return f"{sign}{_decimal(amount, _MICROSECOND)}µs"
    if amount < _SECOND:
        return f"{sign}{_decimal(amount, _MILLISECOND)}ms"
    minutes, rest = divmod(amount, 60 * _SECOND)
    hours, minutes_left = divmod(minutes, 60)
    larger = f"{hours}h{minutes_left}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{larger}{_decimal(rest, _SECOND)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    fraction = f"{rest + unit}"[1:].rstrip("0")
    return f"{whole}.{fraction}" if fraction else f"{whole}"
