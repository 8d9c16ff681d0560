"""Durations read, compute and print as Go's own do."""

from __future__ import annotations

import copy
import operator
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api.duration import Duration
from navarch.errors import InvalidValueError

DURATIONS = st.integers(-(2**62), 2**62 - 1).map(Duration.of_nanoseconds)
# What Go 1.26 makes of each.
READ = [
    ("0", 0, "0s"),
    ("-0", 0, "0s"),
    ("0s", 0, "0s"),
    ("5s", 5_000_000_000, "5s"),
    ("+5s", 5_000_000_000, "5s"),
    ("-5s", -5_000_000_000, "-5s"),
    ("30m", 1_800_000_000_000, "30m0s"),
    ("1h", 3_600_000_000_000, "1h0m0s"),
    ("1.5h", 5_400_000_000_000, "1h30m0s"),
    ("-2m", -120_000_000_000, "-2m0s"),
    ("1h15m30.918273645s", 4_530_918_273_645, "1h15m30.918273645s"),
    ("1ns", 1, "1ns"),
    ("1100ns", 1100, "1.1µs"),
    ("12µs", 12_000, "12µs"),
    ("12μs", 12_000, "12µs"),
    ("12us", 12_000, "12µs"),
    ("2200us", 2_200_000, "2.2ms"),
    ("3300ms", 3_300_000_000, "3.3s"),
    (".5s", 500_000_000, "500ms"),
    ("1.s", 1_000_000_000, "1s"),
    ("1s1s", 2_000_000_000, "2s"),
    ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
    ("0.100000000000000000000h", 360_000_000_000, "6m0s"),
    ("9007199254.740993ms", 9_007_199_254_740_993, "2501h59m59.254740993s"),
    ("2562047h47m16.854775807s", 2**63 - 1, "2562047h47m16.854775807s"),
    ("-2562047h47m16.854775808s", -(2**63), "-2562047h47m16.854775808s"),
]
NO_DURATIONS = [
    "",
    "-",
    "+",
    "3",
    "s",
    ".",
    ".s",
    "1",
    "1d",
    "1 s",
    "1h 5m",
    "s1",
    "1.2.3s",
    "--1s",
    "1h-5m",
    "1H",
    "٣s",
    "1e3s",
]


@pytest.mark.parametrize(("text", "nanoseconds", "printed"), READ)
def test_duration_is_read_and_printed_as_go_does(text: str, nanoseconds: int, printed: str) -> None:
    """To the last nanosecond."""
    duration = Duration(text)
    assert duration.nanoseconds == nanoseconds
    assert str(duration) == duration.to_wire() == printed


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_other_text_is_refused_with_a_remedy(text: str) -> None:
    """A bare number has no unit."""
    with pytest.raises(InvalidValueError, match="1h30m"):
        Duration(text)


@pytest.mark.parametrize(
    "text", ["2562047h47m16.854775808s", "9223372036854775808ns", "99999999999999999999999h", "-300000000h"]
)
def test_duration_beyond_64_bits_is_refused(text: str) -> None:
    """About 292 years."""
    with pytest.raises(InvalidValueError, match="292 years"):
        Duration(text)


def test_arithmetic_beyond_64_bits_is_refused() -> None:
    """Where Go would wrap around."""
    with pytest.raises(InvalidValueError, match="292 years"):
        Duration("2000000h") * 2
    with pytest.raises(InvalidValueError, match="292 years"):
        Duration(timedelta(days=200_000))


@pytest.mark.parametrize("wire", [5, 1.5, None, True, timedelta(1)])
def test_wire_must_be_a_string(wire: object) -> None:
    """As metav1.Duration demands."""
    with pytest.raises(InvalidValueError):
        Duration.from_wire(wire)


def test_constructor_refuses_numbers() -> None:
    """Seconds or nanoseconds? Nobody knows."""
    number: Any = 5
    with pytest.raises(InvalidValueError):
        Duration(number)


def test_timedelta_goes_in_and_out() -> None:
    """What is finer than a microsecond is cut off, towards zero."""
    assert Duration(timedelta(hours=1, microseconds=1)).nanoseconds == 3_600_000_001_000
    assert Duration(timedelta(microseconds=-1)).nanoseconds == -1000
    assert Duration("1.5s").timedelta == timedelta(seconds=1.5)
    assert Duration("-1999ns").timedelta == timedelta(microseconds=-1)
    assert datetime(2006, 1, 2, tzinfo=UTC) + Duration("24h").timedelta == datetime(2006, 1, 3, tzinfo=UTC)


def test_arithmetic_and_order() -> None:
    """All that a span can do."""
    minute = Duration("1m")
    assert minute + minute - Duration("30s") == Duration("90s")
    assert 2 * minute == minute * 2 == Duration("2m")
    assert minute / Duration("30s") == 2.0
    assert abs(-minute) == minute > -minute
    assert min([minute, Duration("1s"), Duration("1h")]).total_seconds() == 1.0
    assert minute
    assert not Duration("0")


@pytest.mark.parametrize("other", [60, 1.5, "1m", timedelta(minutes=1), None])
def test_other_types_take_no_part(other: Any) -> None:
    """Units are never guessed."""
    minute = Duration("1m")
    assert minute != other
    for compute in (operator.add, operator.sub, operator.truediv, operator.lt):
        with pytest.raises(TypeError):
            compute(minute, other)
    with pytest.raises(TypeError):
        operator.mul(minute, 1.5)


def test_copies_and_pickles_are_equal() -> None:
    """Objects that hold durations are copied and sent about."""
    minute = Duration("1m")
    assert copy.deepcopy(minute) is copy.copy(minute) is minute
    assert repr(pickle.loads(pickle.dumps(minute))) == "Duration('1m0s')"


@given(DURATIONS)
def test_printed_duration_reads_back_as_itself(duration: Duration) -> None:
    """Nothing is lost in print."""
    again = Duration(str(duration))
    assert again == duration
    assert hash(again) == hash(duration)


@given(DURATIONS, DURATIONS)
def test_order_follows_the_nanoseconds(left: Duration, right: Duration) -> None:
    """And so does subtraction."""
    assert (left < right) == (left.nanoseconds < right.nanoseconds)
    assert (left - right == Duration("0")) == (left == right)
