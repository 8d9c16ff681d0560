"""Times in tables: how long ago, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime

from navarch._base.clock import Clock
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.times import readable_time, wire_time

__all__ = ["UNKNOWN", "Ages", "human_duration"]

UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: int) -> str:
    """A duration as kubectl prints it: at most two units, the finer one only while it says something.

    >>> [human_duration(s) for s in (5, 119, 150, 3600, 90000, 12 * 86400)]
    ['5s', '119s', '2m30s', '60m', '25h', '12d']
    """
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 3 * _HOUR:
        return _in(seconds, _MINUTE, "m", 1, "s", two_until=10 * _MINUTE)
    if seconds < 2 * _DAY:
        return _in(seconds, _HOUR, "h", _MINUTE, "m", two_until=8 * _HOUR)
    if seconds < 2 * _YEAR:
        return _in(seconds, _DAY, "d", _HOUR, "h", two_until=8 * _DAY)
    return _in(seconds, _YEAR, "y", _DAY, "d", two_until=8 * _YEAR)


def _in(seconds: int, unit: int, letter: str, finer: int, finer_letter: str, *, two_until: int) -> str:
    count, rest = divmod(seconds, unit)
    rest //= finer
    return f"{count}{letter}{rest}{finer_letter}" if rest and seconds < two_until else f"{count}{letter}"


class Ages:
    """How long ago things were, by a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def since(self, moment: str | None) -> str:
        """How long ago a time was; `<unknown>` if there is none."""
        then = readable_time(moment) if moment else None
        return UNKNOWN if then is None else human_duration(wire_time(self._clock.now()).since(then))

    def of(self, value: Json) -> str:
        """How long ago an object was created."""
        return self.since(value.get("metadata", {}).get("creationTimestamp"))

    def now(self) -> datetime:
        """The time now."""
        return self._clock.now().astimezone(UTC)
