"""Texts that should be times: a glance at the usual ones must not let others pass."""

from __future__ import annotations

from itertools import product

import pytest

from navarch.cluster.server.kinds.builtin.generic.go_time import micro_time_fault, time_fault

_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def test_every_day_of_the_year_and_no_other_is_one() -> None:
    """Every month accepts exactly its days; leap years, the year 0000 among them, have a 29th of February."""
    for month, day in product(range(14), range(33)):
        is_day = 1 <= month <= 12 and 1 <= day <= _LENGTHS[month - 1]
        assert (time_fault(f"2026-{month:02}-{day:02}T03:04:05Z") == "") is is_day, (month, day)
    for year, is_leap in (("0000", True), ("1900", False), ("2000", True), ("2024", True), ("2025", False)):
        assert (time_fault(f"{year}-02-29T03:04:05Z") == "") is is_leap, year


@pytest.mark.parametrize(
    ("clock", "is_time", "is_micro_time"),
    [
        ("00:00:00Z", True, False),
        ("23:59:59Z", True, False),
        ("23:59:59.000001Z", True, True),
        ("23:59:59.001Z", True, False),
        ("23:59:59.0000001Z", True, False),
        ("3:04:05+01:00", True, False),
        ("24:00:00Z", False, False),
        ("23:60:00Z", False, False),
        ("23:59:60.000000Z", False, False),
        ("23:59:59.000000Z ", False, False),
        ("23:59:59", False, False),
    ],
)
def test_a_text_is_a_time_or_it_is_not(clock: str, is_time: bool, is_micro_time: bool) -> None:
    """A time parses or has a fault; a MicroTime needs exactly six fractional digits."""
    text = f"2026-01-31T{clock}"
    assert ((time_fault(text) == ""), (micro_time_fault(text) == "")) == (is_time, is_micro_time)
