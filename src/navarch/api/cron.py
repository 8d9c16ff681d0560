"""Schedules as CronJobs have them: cron's five fields in a time zone, or an interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from navarch.api.duration import Duration
from navarch.api.strconv import parse_int64
from navarch.errors import InvalidValueError


class Schedule(Protocol):
    """Returns the times at which something recurs."""

    def after(self, moment: datetime) -> datetime | None:
        """Returns the first time after that moment, in UTC; None if there is none within five years."""
        ...


class CronField(NamedTuple):
    """The numbers that one of cron's fields may have, and their names."""

    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def named(self, text: str) -> int | None:
        """Returns the number of that name, in any case; None if there is none."""
        name = text.lower()
        return self.names.index(name) + self.lowest if name in self.names else None


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
CRON_FIELDS: Final = (
    CronField(0, 59),
    CronField(0, 23),
    CronField(1, 31),
    CronField(1, 12, _MONTHS),
    CronField(0, 6, _DAYS),
)
"""Minute, hour, day of the month, month, day of the week."""
CRON_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Words that stand for five fields."""
EVERY: Final = "@every "
"""The beginning of an interval."""
_MINUTE: Final = timedelta(minutes=1)
_FIVE_YEARS: Final = timedelta(days=5 * 366)
_ANY: Final = ("*", "?")


def zone_of(name: str | None) -> tzinfo:
    """Returns the time zone of that name, UTC for None. Raises `InvalidValueError` for an unknown name."""
    if not name or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValueError(f"expected the name of a time zone, got {name!r}") from None


def schedule_of(text: str, zone: tzinfo = UTC) -> Schedule:
    """Parses a schedule; `zone` applies unless the text names its own.

    Raises `InvalidValueError` for text that is no schedule.

    >>> schedule_of("*/15 9-17 * * mon-fri").after(datetime(2030, 1, 5, tzinfo=UTC))
    datetime.datetime(2030, 1, 7, 9, 0, tzinfo=datetime.timezone.utc)
    """
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, _, text = text.partition("=")[2].partition(" ")
        zone = zone_of(name)
    text = text.strip()
    if text.startswith(EVERY):
        return _Interval(_seconds(text.removeprefix(EVERY)))
    fields = CRON_WORDS.get(text, text).split()
    if len(fields) != len(CRON_FIELDS):
        raise InvalidValueError(f"expected a schedule of {len(CRON_FIELDS)} fields, got {text!r}")
    minutes, hours, days, months, weekdays = (
        frozenset(_numbers(written, field)) for written, field in zip(fields, CRON_FIELDS, strict=True)
    )
    either = not (_is_any(fields[2]) or _is_any(fields[4]))
    return _Cron(minutes, hours, days, months, weekdays, either_day=either, zone=zone)


def _is_any(written: str) -> bool:
    """Returns True if the field means every number, without steps."""
    return any(part.removesuffix("/1") in _ANY for part in written.split(","))


def _seconds(text: str) -> timedelta:
    """Returns the interval as whole seconds, at least one."""
    return max(timedelta(seconds=int(Duration(text).timedelta.total_seconds())), timedelta(seconds=1))


def _numbers(text: str, field: CronField) -> Iterator[int]:
    for part in filter(None, text.split(",")):
        bounds, _, step = part.partition("/")
        first, _, last = bounds.partition("-")
        if first in _ANY:
            lowest, highest = field.lowest, field.highest
        else:
            lowest = _number(first, field)
            highest = _number(last, field) if last else field.highest if step else lowest
        yield from range(lowest, highest + 1, _step(step))


def _step(text: str) -> int:
    if not text:
        return 1
    if text.isdecimal() and (step := parse_int64(text)):
        return step
    raise InvalidValueError(f"expected a step above 0 in a schedule, got {text!r}")


def _number(text: str, field: CronField) -> int:
    if (named := field.named(text)) is not None:
        return named
    number = parse_int64(text) if text.isdecimal() else None
    if number is not None and field.lowest <= number <= field.highest:
        return number
    raise InvalidValueError(f"expected a number from {field.lowest} to {field.highest} in a schedule, got {text!r}")


@dataclass(frozen=True, slots=True)
class _Interval:
    """A schedule that is due so many seconds after the last time."""

    length: timedelta

    def after(self, moment: datetime) -> datetime:
        return moment.replace(microsecond=0) + self.length


@dataclass(frozen=True, slots=True)
class _Cron:
    """A schedule that is due in every minute whose parts are all listed. It skips a time that the clocks skip.

    With `either_day`, the day of the month or the day of the week is enough.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    zone: tzinfo

    def after(self, moment: datetime) -> datetime | None:
        found = moment.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        end = found + _FIVE_YEARS
        while found < end:
            later = self._not_before(found)
            if later == found:
                return found
            found = later
        return None

    def _not_before(self, moment: datetime) -> datetime:
        """Returns the moment itself if it is due; else a later one before which none is due."""
        local = moment.astimezone(self.zone)
        if local.month not in self.months:
            return self._midnight(moment, (local.replace(day=1) + timedelta(days=32)).replace(day=1))
        if not self._is_day(local):
            return self._midnight(moment, local + timedelta(days=1))
        if local.hour not in self.hours:
            return moment + timedelta(minutes=60 - local.minute)
        if local.minute not in self.minutes:
            following = min((minute for minute in self.minutes if minute > local.minute), default=60)
            return moment + timedelta(minutes=following - local.minute)
        return moment

    def _is_day(self, local: datetime) -> bool:
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (day or weekday) if self.either_day else (day and weekday)

    def _midnight(self, moment: datetime, day: datetime) -> datetime:
        """Returns the beginning of that day, always after the moment, even where clocks change."""
        begins = datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC)
        return max(begins, moment + _MINUTE)
