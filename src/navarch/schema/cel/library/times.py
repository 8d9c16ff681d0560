"""Timestamps and durations: parsing, formatting and their parts."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from navarch.api.duration import Duration as GoDuration
from navarch.errors import InvalidValueError
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import Overload, method
from navarch.schema.cel.values import NANOS, CelDuration, Timestamp, checked_timestamp

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))\Z", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"([+-]?\d{1,9}):([+-]?\d{1,9})\Z", re.ASCII)


def parse_timestamp(text: str) -> Timestamp:
    """Parses RFC 3339. Raises `CelEvaluationError`."""
    match = _TIMESTAMP.match(text)
    if match is None:
        raise CelEvaluationError(f"{text!r} is no timestamp; expected RFC 3339, such as 2024-01-31T12:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise CelEvaluationError(f"{text!r} is no timestamp: {error}") from None
    offset = _offset_seconds(match)
    fraction = int(f"{match[7] or '0':0<9}"[:9])
    return checked_timestamp((timegm(moment.timetuple()) - offset) * NANOS + fraction, offset)


def _offset_seconds(match: re.Match[str]) -> int:
    if match[8] is None:
        return 0
    hours, minutes = int(match[9]), int(match[10])
    if hours > 24 or minutes > 59:
        raise CelEvaluationError(f"{match.group()!r} is no timestamp: its offset is out of range")
    return (hours * 3600 + minutes * 60) * (-1 if match[8] == "-" else 1)


def parse_duration(text: str) -> CelDuration:
    """Parses Go's durations: `1h30m`, `1.5s`, `-2ms`. Raises `CelEvaluationError`."""
    try:
        return CelDuration(GoDuration(text).nanoseconds)
    except InvalidValueError as error:
        raise CelEvaluationError(str(error)) from None


def format_timestamp(moment: Timestamp) -> str:
    """Returns RFC 3339 text with the original offset and no more digits than needed."""
    seconds, nanos = divmod(moment.nanos, NANOS)
    local = _EPOCH + timedelta(seconds=seconds + moment.offset)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    sign, offset = "-" if moment.offset < 0 else "+", abs(moment.offset)
    zone = f"{sign}{offset // 3600:02}:{offset // 60 % 60:02}" if offset else "Z"
    return f"{local.year:04}-{local:%m-%dT%H:%M:%S}{fraction}{zone}"


def format_duration(duration: CelDuration) -> str:
    """Returns the duration in seconds, with no more digits than a double of them needs."""
    whole, rest = divmod(abs(duration.nanos), NANOS)
    text = f"{Decimal(repr(whole + rest / 1e9)):f}".rstrip("0").rstrip(".")
    return f"{'-' if duration.nanos < 0 else ''}{text or '0'}s"


def _local(moment: Timestamp, zone: str) -> datetime:
    return (_EPOCH + timedelta(seconds=moment.nanos // NANOS)).astimezone(_zone(zone))


def _zone(name: str) -> tzinfo:
    """An IANA name, or an offset such as +05:30."""
    if name in {"", "UTC"}:
        return UTC
    if ":" in name:
        match = _OFFSET.match(name)
        if match is None:
            raise CelEvaluationError(f"unknown time zone {name!r}; expected a name or an offset such as +05:30")
        hours, minutes = int(match[1]), int(match[2])
        try:
            return timezone(timedelta(minutes=hours * 60 + (-minutes if name.startswith("-") else minutes)))
        except (ValueError, OverflowError):
            raise CelEvaluationError(f"expected a time zone within 24 hours of UTC, got {name!r}") from None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelEvaluationError(f"unknown time zone {name!r}; expected a name or an offset such as +05:30") from None


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda local: local.year,
    "getMonth": lambda local: local.month - 1,
    "getDayOfYear": lambda local: local.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda local: local.day - 1,
    "getDate": lambda local: local.day,
    "getDayOfWeek": lambda local: local.isoweekday() % 7,
    "getHours": lambda local: local.hour,
    "getMinutes": lambda local: local.minute,
    "getSeconds": lambda local: local.second,
}
_SPANS = {"getHours": 3600 * NANOS, "getMinutes": 60 * NANOS, "getSeconds": NANOS, "getMilliseconds": 1_000_000}


def _part_of_timestamp(name: str) -> list[Overload]:
    part = _PARTS[name]
    return [
        method(name, "timestamp -> int", lambda moment: part(_local(moment, "UTC"))),
        method(name, "timestamp, string -> int", lambda moment, zone: part(_local(moment, zone))),
    ]


def _part_of_duration(name: str) -> Overload:
    span = _SPANS[name]
    return method(name, "duration -> int", lambda each: abs(each.nanos) // span * (-1 if each.nanos < 0 else 1))


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return moment.nanos % NANOS // 1_000_000


OVERLOADS = [
    *(overload for name in _PARTS for overload in _part_of_timestamp(name)),
    *(_part_of_duration(name) for name in _SPANS),
    method("getMilliseconds", "timestamp -> int", _milliseconds),
    method("getMilliseconds", "timestamp, string -> int", _milliseconds),
]
