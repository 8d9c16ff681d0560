"""Times of stored objects: the years 0000 to 9999, of which Python's `datetime` lacks the first.

Whoever reads times of stored objects in the server reads them here, so that no object that was accepted is unreadable.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from navarch.api.times import parse_time
from navarch.errors import InvalidValueError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS: Final = 400
_CYCLE: Final = timedelta(days=146_097)
"""The calendar repeats itself after 400 years."""
_FIRST: Final = -62_167_219_200
"""0000-01-01T00:00:00Z"""
_LAST: Final = 253_402_300_799
"""9999-12-31T23:59:59Z"""
_LONGEST: Final = 2**63 // 10**9
"""Seconds of the longest duration that Go knows; longer ones count as that."""


class WireTime(NamedTuple):
    """A moment: seconds since 1970, and microseconds beside them."""

    seconds: int
    microseconds: int = 0

    @property
    def has_text(self) -> bool:
        """Whether it lies in a year of four digits."""
        return _FIRST <= self.seconds <= _LAST

    def since(self, earlier: WireTime) -> int:
        """Seconds from another moment to this one, towards zero; as many as Go can count."""
        passed = (self.seconds - earlier.seconds) * 10**6 + self.microseconds - earlier.microseconds
        seconds = abs(passed) // 10**6
        return min(seconds, _LONGEST) if passed >= 0 else -min(seconds, _LONGEST)

    def text(self, *, fractions: bool = False) -> str:
        """The text of a metav1.Time, or with `fractions` of a metav1.MicroTime.

        >>> read_time("0000-01-01T01:30:00+01:00").text()
        '0000-01-01T00:30:00Z'
        """
        years, cycle = (_YEARS, _CYCLE) if self.seconds < 0 else (0, timedelta())
        moment = _EPOCH + cycle + timedelta(seconds=self.seconds, microseconds=self.microseconds)
        rest = moment.replace(tzinfo=None).isoformat(timespec="microseconds" if fractions else "seconds")[4:]
        return f"{moment.year - years:04d}{rest}Z"


def read_time(text: str) -> WireTime:
    """The moment of an RFC 3339 text; raises InvalidValueError unless it is one in the years 0000 to 9999 of UTC."""
    shift = _YEARS if text[:1] == "0" else -_YEARS
    shifted = parse_time(
        f"{int(text[:4]) + shift:04d}{text[4:]}" if text[:4].isascii() and text[:4].isdecimal() else text
    )
    since = shifted - _EPOCH + (-_CYCLE if shift > 0 else _CYCLE)
    moment = WireTime(since.days * 86_400 + since.seconds, since.microseconds)
    if not moment.has_text:
        raise InvalidValueError(f"expected a time in the years 0000 to 9999 of UTC, got {text!r}")
    return moment


def readable_time(text: str) -> WireTime | None:
    """The same; None for what is none."""
    try:
        return read_time(text)
    except InvalidValueError:
        return None


def wire_time(moment: datetime) -> WireTime:
    """A moment of a clock."""
    since = moment - _EPOCH
    return WireTime(since.days * 86_400 + since.seconds, since.microseconds)
