"""Go's errors for timestamps that do not parse."""

from __future__ import annotations

import re
from typing import Final

from navarch.api.strconv import go_quoted
from navarch.cluster.server.wire.times import readable_time

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_ELEMENTS: Final = (
    ("2006", re.compile(r"[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile(r"[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile(r"[0-9]{2}")),
    ("T", re.compile("T")),
    ("15", re.compile(r"[0-9]{1,2}")),
    (":", re.compile(":")),
    ("04", re.compile(r"[0-9]{2}")),
    (":", re.compile(":")),
    ("05", re.compile(r"[0-9]{2}")),
)
_ZONE: Final = ("Z07:00", re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}"))
_FRACTION: Final = ("", re.compile(r"([.,][0-9]+)?"))
_MICRO_FRACTION: Final = (".000000", re.compile(r"[.,][0-9]{6}(?![0-9])"))
_RANGES: Final = {"01": ("month", 1, 12), "02": ("day", 1, 31), "15": ("hour", 0, 23), "04": ("minute", 0, 59)}
_SECOND: Final = ("second", 0, 59)
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE: Final = "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_USUAL: Final = re.compile(rf"[0-9]{{4}}-{_DATE}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{6}})?Z")
"""Texts without a fault, as Kubernetes itself writes them: nearly all that come, known at one glance. Whether there is a
29th of February is looked up.
"""


def time_fault(text: str) -> str:
    """The sentence about a text that should be a time; empty if it is one.

    >>> time_fault("yesterday")
    'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'
    >>> time_fault("2026-01-02T03:04:05Z")
    ''
    """
    return "" if _USUAL.fullmatch(text) else _fault(text, _LAYOUT, (*_ELEMENTS, _FRACTION, _ZONE))


def micro_time_fault(text: str) -> str:
    """Returns the error for a MicroTime, which has exactly six fractional digits."""
    if "." in text and _USUAL.fullmatch(text):
        return ""
    return _fault(text, _MICRO_LAYOUT, (*_ELEMENTS, _MICRO_FRACTION, _ZONE))


def _fault(text: str, layout: str, elements: tuple[tuple[str, re.Pattern[str]], ...]) -> str:
    rest = text
    month = 1
    for element, pattern in elements:
        found = pattern.match(rest)
        if found is None:
            parsed = f"parsing time {go_quoted(text)} as {go_quoted(layout)}"
            return f"{parsed}: cannot parse {go_quoted(rest)} as {go_quoted(element)}"
        said = _out_of_range(element, found.group())
        if said or (element == "02" and int(found.group()) > _DAYS[month - 1]):
            return f"parsing time {go_quoted(text)}: {said or 'day'} out of range"
        month = int(found.group()) if element == "01" else month
        rest = rest[found.end() :]
    if rest:
        return f"parsing time {go_quoted(text)}: extra text: {go_quoted(rest)}"
    return "" if readable_time(text) is not None else f"parsing time {go_quoted(text)}: day out of range"


def _out_of_range(element: str, digits: str) -> str:
    if element not in _RANGES and element != "05":
        return ""
    unit, lowest, highest = _RANGES.get(element, _SECOND)
    return "" if lowest <= int(digits) <= highest else unit
