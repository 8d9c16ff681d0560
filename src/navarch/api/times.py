"""Timestamps on the wire: metav1.Time, a plain `datetime` in Python, and metav1.MicroTime."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from navarch.errors import InvalidValueError

# What Go's time.Parse takes for RFC 3339: a one-digit hour and a decimal comma too, but no small letters and no spaces.
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_LARGEST_OFFSET_HOURS: Final = 24
_LARGEST_OFFSET_MINUTES: Final = 60
_MICRO_DIGITS: Final = 6


def parse_time(text: str) -> datetime:
    """Returns the time of an RFC 3339 text, in UTC, truncated to microseconds.

    Raises InvalidValueError for text that Kubernetes refuses, above all for one without an offset.

    >>> parse_time("2024-02-29T13:30:00+01:00")
    datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
    """
    parts = _RFC3339.fullmatch(text)
    if parts is None:
        raise _invalid(text)
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = parts.groups(default="0")
    microsecond = int(f"{fraction:0<6}"[:_MICRO_DIGITS])
    try:
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), microsecond, UTC)
        return local - _offset(sign, int(offset_hours), int(offset_minutes))
    except (ValueError, OverflowError) as error:
        raise _invalid(text) from error


def format_time(moment: datetime) -> str:
    """Returns the text of metav1.Time: UTC, truncated to seconds.

    Raises InvalidValueError for a datetime without a time zone.

    >>> format_time(datetime(2006, 1, 2, 15, 4, 5, 999999, UTC))
    '2006-01-02T15:04:05Z'
    """
    return f"{_in_utc(moment).replace(microsecond=0, tzinfo=None).isoformat()}Z"


def truncate_to_seconds(moment: datetime) -> datetime:
    """Returns the time in UTC as the API server returns it, without a fraction.

    >>> truncate_to_seconds(datetime(2006, 1, 2, 15, 4, 5, 999999, UTC))
    datetime.datetime(2006, 1, 2, 15, 4, 5, tzinfo=datetime.timezone.utc)
    """
    return _in_utc(moment).replace(microsecond=0)


class MicroTime(datetime):
    """A datetime with exactly six fractional digits on the wire, as metav1.MicroTime.

    Leases and events use it. Sums with timedelta stay MicroTime.

    >>> MicroTime.of(datetime(2006, 1, 2, 15, 4, 5, tzinfo=UTC)).to_wire()
    '2006-01-02T15:04:05.000000Z'
    """

    __slots__ = ()

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """Returns the same time, in UTC.

        >>> MicroTime.of(datetime(2006, 1, 2, tzinfo=UTC)).year
        2006
        """
        utc = _in_utc(moment)
        return cls(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, UTC)

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """Returns the time of a metav1.MicroTime.

        Raises InvalidValueError unless there are six fractional digits, as the API server does.

        >>> MicroTime.from_wire("2006-01-02T15:04:05.000007Z").microsecond
        7
        """
        parts = _RFC3339.fullmatch(value) if isinstance(value, str) else None
        if parts is None or len(parts.group(7) or "") != _MICRO_DIGITS:
            raise InvalidValueError(
                f"expected an RFC 3339 time with six fractional digits, got {value!r}; "
                "write it like 2006-01-02T15:04:05.000000Z"
            )
        return cls.of(parse_time(parts.string))

    def to_wire(self) -> str:
        """Returns the text in UTC with six fractional digits.

        >>> MicroTime(2006, 1, 2, 15, 4, 5, 7, UTC).to_wire()
        '2006-01-02T15:04:05.000007Z'
        """
        return f"{_in_utc(self).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _offset(sign: str, hours: int, minutes: int) -> timedelta:
    if hours > _LARGEST_OFFSET_HOURS or minutes > _LARGEST_OFFSET_MINUTES:
        raise ValueError("offset out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if sign == "-" else offset


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InvalidValueError(f"expected a datetime with a time zone, got {moment!r}; pass tzinfo=datetime.UTC")
    return moment.astimezone(UTC)


def _invalid(text: str) -> InvalidValueError:
    return InvalidValueError(f"expected an RFC 3339 time, got {text!r}; write it like 2006-01-02T15:04:05Z")
