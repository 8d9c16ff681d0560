"""The schedules of CronJobs: what is wrong with one, in the words of the library that Kubernetes parses them with."""

from __future__ import annotations

import re
from typing import Final

from navarch.api.integers import parse_int64
from navarch.api.schedules import CRON_FIELDS, CRON_WORDS, EVERY, CronField

__all__ = ["schedule_fault"]

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
    if len(fields) != len(CRON_FIELDS):
        return f"expected exactly {len(CRON_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    faults = (
        _range_fault(part, field)
        for written, field in zip(fields, CRON_FIELDS, strict=True)
        for part in written.split(",")
        if part
    )
    return next((fault for fault in faults if fault), "")


def _descriptor_fault(text: str) -> str:
    if text in CRON_WORDS:
        return ""
    if not text.startswith(EVERY):
        return f"unrecognized descriptor: {text}"
    written = text.removeprefix(EVERY)
    if _DURATION.fullmatch(written):
        return ""
    why = "missing unit in duration" if re.fullmatch(r"[0-9.]+", written) else "invalid duration"
    return f'failed to parse duration {text}: time: {why} "{written}"'


def _range_fault(text: str, field: CronField) -> str:
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


def _number(text: str, field: CronField) -> int | str:
    """The number that a text is, or what is wrong with it."""
    if (named := field.named(text)) is not None:
        return named
    if text.isascii() and text.isdecimal() and (number := parse_int64(text)) is not None:
        return number
    if re.fullmatch(r"-[0-9]+", text):
        return f"negative number ({text}) not allowed: {text}"
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


def _step_fault(steps: list[str], text: str) -> str:
    if not steps:
        return ""
    step = _number(steps[0], CronField(0, 0))
    if isinstance(step, str):
        return step
    return "" if step else f"step of range should be a positive number: {text}"


def _bounds_fault(lowest: int, highest: int, text: str, field: CronField) -> str:
    if lowest < field.lowest:
        return f"beginning of range ({lowest}) below minimum ({field.lowest}): {text}"
    if highest > field.highest:
        return f"end of range ({highest}) above maximum ({field.highest}): {text}"
    if lowest > highest:
        return f"beginning of range ({lowest}) beyond end of range ({highest}): {text}"
    return ""
