"""Times go over the wire as Kubernetes' own do."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api.times import MicroTime, format_time, parse_time, truncate_to_seconds
from navarch.errors import InvalidValueError

MOMENTS = st.datetimes(timezones=st.just(UTC))
TAKEN = [
    ("2006-01-02T15:04:05Z", datetime(2006, 1, 2, 15, 4, 5, tzinfo=UTC)),
    ("2006-01-02T15:04:05.1Z", datetime(2006, 1, 2, 15, 4, 5, 100000, UTC)),
    ("2006-01-02T15:04:05,25Z", datetime(2006, 1, 2, 15, 4, 5, 250000, UTC)),
    ("2006-01-02T15:04:05.9999999999Z", datetime(2006, 1, 2, 15, 4, 5, 999999, UTC)),
    ("2006-01-02T5:04:05Z", datetime(2006, 1, 2, 5, 4, 5, tzinfo=UTC)),
    ("2006-01-02T15:04:05+07:00", datetime(2006, 1, 2, 8, 4, 5, tzinfo=UTC)),
    ("2006-01-02T15:04:05-07:30", datetime(2006, 1, 2, 22, 34, 5, tzinfo=UTC)),
    ("2006-01-02T15:04:05-00:00", datetime(2006, 1, 2, 15, 4, 5, tzinfo=UTC)),
    ("2006-01-02T15:04:05+24:60", datetime(2006, 1, 1, 14, 4, 5, tzinfo=UTC)),
]
REFUSED = [
    "",
    "2006-01-02",
    "2006-01-02T15:04:05",
    "2006-01-02 15:04:05Z",
    "2006-01-02t15:04:05z",
    "2006-1-2T15:04:05Z",
    "2006-01-02T15:4:5Z",
    "2006-01-02T15:04:05.Z",
    "2006-01-02T15:04:60Z",
    "2006-01-02T24:00:00Z",
    "2006-02-30T15:04:05Z",
    "2006-01-02T15:04:05+25:00",
    "2006-01-02T15:04:05+0700",
    "2006-01-02T15:04:05Z\n",
    "9999-12-31T23:59:59-23:00",
    "0001-01-01T00:00:00+01:00",
    "٢٠٠٦-01-02T15:04:05Z",
]


@pytest.mark.parametrize(("text", "moment"), TAKEN)
def test_parse_takes_what_kubernetes_takes(text: str, moment: datetime) -> None:
    """Always an aware datetime in UTC."""
    assert parse_time(text) == moment
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize("text", REFUSED)
def test_parse_refuses_what_is_no_rfc_3339_time(text: str) -> None:
    """The error shows the form wanted."""
    with pytest.raises(InvalidValueError, match="2006-01-02T15:04:05Z"):
        parse_time(text)


def test_format_converts_to_utc_and_cuts_the_fraction() -> None:
    """As metav1.Time is written."""
    moment = datetime(2006, 1, 2, 15, 4, 5, 999999, timezone(timedelta(hours=7)))
    assert format_time(moment) == "2006-01-02T08:04:05Z"
    assert truncate_to_seconds(moment) == datetime(2006, 1, 2, 8, 4, 5, tzinfo=UTC)


def test_year_has_four_digits() -> None:
    """Also long ago."""
    assert format_time(datetime(33, 4, 3, tzinfo=UTC)) == "0033-04-03T00:00:00Z"


def test_naive_datetime_is_refused() -> None:
    """A time without a zone is nobody's time."""
    naive = datetime(2006, 1, 2)  # noqa: DTZ001 - naive on purpose
    for use in (format_time, truncate_to_seconds, MicroTime.of):
        with pytest.raises(InvalidValueError, match="tzinfo"):
            use(naive)


@given(MOMENTS)
def test_formatted_time_reads_back_as_the_truncated_moment(moment: datetime) -> None:
    """What is sent is what truncate_to_seconds promises."""
    assert parse_time(format_time(moment)) == truncate_to_seconds(moment)


@given(MOMENTS)
def test_micro_time_survives_the_wire(moment: datetime) -> None:
    """To the microsecond."""
    micro = MicroTime.of(moment)
    assert MicroTime.from_wire(micro.to_wire()) == micro == moment


@pytest.mark.parametrize(
    "wire", ["2006-01-02T15:04:05Z", "2006-01-02T15:04:05.12345Z", "2006-01-02T15:04:05.1234567Z", "x", 5, None]
)
def test_micro_time_demands_six_digits(wire: object) -> None:
    """The API server refuses every other number of them."""
    with pytest.raises(InvalidValueError, match="six fractional digits"):
        MicroTime.from_wire(wire)


def test_micro_time_refuses_a_day_that_is_not() -> None:
    """The digits alone do not make a time."""
    with pytest.raises(InvalidValueError, match="RFC 3339"):
        MicroTime.from_wire("2006-02-30T15:04:05.000000Z")


def test_micro_time_stays_one_through_arithmetic_and_copies() -> None:
    """A renewed lease keeps its precision."""
    start = MicroTime(2006, 1, 2, tzinfo=UTC)
    for moment in (start + timedelta(seconds=1), copy.deepcopy(start), pickle.loads(pickle.dumps(start))):
        assert type(moment) is MicroTime


class Lease(msgspec.Struct):
    renewed: MicroTime
    created: datetime | None = None
    history: list[MicroTime] = []


def test_micro_time_goes_through_the_hooks_of_msgspec() -> None:
    """A subclass of datetime is left to the hooks, a plain one is not."""
    lease = Lease(
        MicroTime(2006, 1, 2, tzinfo=UTC), datetime(2006, 1, 2, tzinfo=UTC), [MicroTime(2006, 1, 3, tzinfo=UTC)]
    )
    encoded = msgspec.json.encode(lease, enc_hook=lambda value: value.to_wire())
    assert b'"renewed":"2006-01-02T00:00:00.000000Z","created":"2006-01-02T00:00:00Z"' in encoded
    decoded = msgspec.json.decode(encoded, type=Lease, dec_hook=lambda _, value: MicroTime.from_wire(value))
    assert decoded == lease
    assert type(decoded.renewed) is MicroTime
    assert type(decoded.created) is datetime
