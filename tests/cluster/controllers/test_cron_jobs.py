"""When a CronJob is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api import ObjectMeta, parse_time
from navarch.api.schedules import schedule_of, zone_of
from navarch.cluster.controllers.workloads.cronjobs import due_of, seconds_to_next
from navarch.errors import InvalidValueError
from navarch.k8s.batch.v1 import CronJob, CronJobSpec, CronJobStatus, JobSpec, JobTemplateSpec
from navarch.k8s.core.v1 import PodSpec, PodTemplateSpec

NOON = datetime(2030, 1, 2, 12, 0, 30, tzinfo=UTC)  # a Wednesday


def cron_job(last: datetime | None = None, created: datetime = NOON, **spec: Any) -> CronJob:
    template = JobTemplateSpec(spec=JobSpec(template=PodTemplateSpec(spec=PodSpec(containers=[]))))
    return CronJob(
        metadata=ObjectMeta(name="tick", creation_timestamp=created),
        spec=CronJobSpec(schedule="", job_template=template, **spec),
        status=CronJobStatus(last_schedule_time=last),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2030-01-02T12:01:00Z"),
        ("*/15 * * * *", "2030-01-02T12:15:00Z"),
        ("5/20 * * * *", "2030-01-02T12:05:00Z"),
        ("0 9-17 * * mon-fri", "2030-01-02T13:00:00Z"),
        ("0 0 1 * *", "2030-02-01T00:00:00Z"),
        ("30 4 1,15 * 5", "2030-01-04T04:30:00Z"),
        ("30 4 */2 * 5", "2030-01-03T04:30:00Z"),
        ("0 0 29 2 *", "2032-02-29T00:00:00Z"),
        ("0 0 * * sun", "2030-01-06T00:00:00Z"),
        ("0 0 1 JAN ?", "2031-01-01T00:00:00Z"),
        ("@hourly", "2030-01-02T13:00:00Z"),
        ("@daily", "2030-01-03T00:00:00Z"),
        ("@weekly", "2030-01-06T00:00:00Z"),
        ("@every 90s", "2030-01-02T12:02:00Z"),
        ("TZ=Asia/Tokyo 0 0 * * *", "2030-01-02T15:00:00Z"),
    ],
)
def test_next_time_is_the_first_that_is_meant(text: str, expected: str) -> None:
    """After a Wednesday noon."""
    assert schedule_of(text).after(NOON) == parse_time(expected)


def test_schedule_that_never_comes_ends() -> None:
    """Nobody looks for the thirtieth of February for ever."""
    assert schedule_of("0 0 30 2 *").after(NOON) is None


def test_clocks_that_are_turned_neither_lose_nor_invent_a_time() -> None:
    """In spring half past two does not come; in autumn it comes twice."""
    schedule = schedule_of("30 2 * * *", zone_of("Europe/Berlin"))
    spring, autumn = datetime(2030, 3, 30, 12, tzinfo=UTC), datetime(2030, 10, 26, 12, tzinfo=UTC)
    assert schedule.after(spring) == datetime(2030, 4, 1, 0, 30, tzinfo=UTC)
    first = schedule.after(autumn)
    assert first == datetime(2030, 10, 27, 0, 30, tzinfo=UTC)
    assert first is not None
    assert schedule.after(first) == datetime(2030, 10, 27, 1, 30, tzinfo=UTC)


@given(st.integers(0, 20 * 366 * 24 * 3600))
def test_next_time_is_later_and_none_lies_between(seconds: int) -> None:
    """For a schedule that uses every field."""
    moment = NOON + timedelta(seconds=seconds)
    schedule = schedule_of("*/7 3,15 * 2-11/3 1-5", zone_of("America/New_York"))
    found = schedule.after(moment)
    assert found is not None
    assert found > moment
    assert schedule.after(found - timedelta(seconds=1)) == found


@pytest.mark.parametrize(
    "text", ["", "* * * *", "a * * * *", "@often", "@every x", "TZ=Nowhere/Land * * * * *", "*/0 * * * *", "61 * * * *"]
)
def test_schedule_that_cannot_be_read_is_refused(text: str) -> None:
    """The server would have refused most of them."""
    with pytest.raises(InvalidValueError):
        schedule_of(text)


MINUTELY = schedule_of("* * * * *")


def test_nothing_is_due_before_its_time() -> None:
    """A new CronJob waits for the first time after it was made."""
    assert due_of(cron_job(), MINUTELY, NOON + timedelta(seconds=20)).at is None
    assert seconds_to_next(cron_job(), MINUTELY, NOON + timedelta(seconds=20)) == pytest.approx(10.1)


@pytest.mark.parametrize("minutes", [1, 2, 50])
def test_last_of_several_missed_times_is_due(minutes: int) -> None:
    """The others are not made up for."""
    now = NOON + timedelta(minutes=minutes)
    due = due_of(cron_job(), MINUTELY, now)
    assert (due.at, due.many_missed) == (now.replace(second=0), False)


def test_many_missed_times_are_told() -> None:
    """Something may be wrong with the clock."""
    now = NOON + timedelta(days=1)
    assert due_of(cron_job(), MINUTELY, now) == due_of(cron_job(NOON.replace(second=0)), MINUTELY, now)
    assert due_of(cron_job(), MINUTELY, now).many_missed


def test_time_that_is_too_long_ago_is_not_due() -> None:
    """It should have begun by then, or not at all."""
    daily = schedule_of("@daily")
    since = cron_job(created=NOON - timedelta(days=3), starting_deadline_seconds=3600)
    assert due_of(since, daily, NOON).at is None
    assert due_of(cron_job(created=NOON - timedelta(days=3)), daily, NOON).at == NOON.replace(hour=0, second=0)


def test_time_that_was_dealt_with_is_not_due_again() -> None:
    """Only what comes after it."""
    last = NOON.replace(second=0)
    assert due_of(cron_job(last), MINUTELY, NOON).at is None
    assert due_of(cron_job(last), MINUTELY, NOON + timedelta(minutes=1)).at == last + timedelta(minutes=1)
