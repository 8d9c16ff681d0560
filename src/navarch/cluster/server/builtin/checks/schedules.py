"""The schedules of CronJobs: what is wrong with one, in the words of the library that Kubernetes parses them with."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["schedule_fault"]


class _Field(NamedTuple):
    lowest: int
    highest: int
    names: tuple[str, ...] = ()


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))
_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_DURATION: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*")


def schedule_fault(schedule: str) -> str:
    """What is wrong with it; empty if nothing is.

    >>> schedule_fault("*/5 9-17 * * mon-fri"), schedule_fault("61 * * * *")
    ('', 'end of range (61) above maximum (59): 61')
    """
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if text.startswith("@"):
        return _descriptor_fault(text)
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    faults = (
        _range_fault(part, field)
        for written, field in zip(fields, _FIELDS, strict=True)
        for part in written.split(",")
        if part
    )
    return next((fault for fault in faults if fault), "")


def _descriptor_fault(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if not text.startswith("@every "):
        return f"unrecognized descriptor: {text}"
    written = text.removeprefix("@every ")
    if _DURATION.fullmatch(written):
        return ""
    why = "missing unit in duration" if re.fullmatch(r"[0-9.]+", written) else "invalid duration"
    return f'failed to parse duration {text}: time: {why} "{written}"'


def _range_fault(text: str, field: _Field) -> str:
    range_text, *steps = text.split("/")
    if len(steps) > 1:
        return f"too many slashes: {text}"
    bounds = range_text.split("-")
    if bounds[0] in {"*", "?"}:
        lowest, highest = field.lowest, field.highest
    elif len(bounds) > 2:
        return f"too many hyphens: {text}"
    else:
        numbers = [_number(bound, field) for bound in bounds]
        wrong = next((number for number in numbers if isinstance(number, str)), "")
        if wrong:
            return wrong
        lowest, highest = int(numbers[0]), int(numbers[-1])
        if steps and len(bounds) == 1:
            highest = field.highest
    return _step_fault(steps, text) or _bounds_fault(lowest, highest, text, field)


def _number(text: str, field: _Field) -> int | str:
    """The number that a text is, or what is wrong with it."""
    if text.lower() in field.names:
        return field.names.index(text.lower()) + field.lowest
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    if re.fullmatch(r"-[0-9]+", text):
        return f"negative number ({text}) not allowed: {text}"
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


def _step_fault(steps: list[str], text: str) -> str:
    if not steps:
        return ""
    step = _number(steps[0], _Field(0, 0))
    if isinstance(step, str):
        return step
    return "" if step else f"step of range should be a positive number: {text}"


def _bounds_fault(lowest: int, highest: int, text: str, field: _Field) -> str:
    if lowest < field.lowest:
        return f"beginning of range ({lowest}) below minimum ({field.lowest}): {text}"
    if highest > field.highest:
        return f"end of range ({highest}) above maximum ({field.highest}): {text}"
    if lowest > highest:
        return f"beginning of range ({lowest}) beyond end of range ({highest}): {text}"
    return ""
