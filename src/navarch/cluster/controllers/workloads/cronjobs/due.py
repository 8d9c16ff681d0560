"""Which Job of a CronJob is due."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from navarch.api.cron import Schedule
from navarch.k8s.batch.v1 import CronJob

__all__ = ["Due", "due_of", "seconds_to_next"]

_MANY = 100
_DELTA_SECONDS = 0.1
"""So that a clock that is a little slow does not look too soon."""


@dataclass(frozen=True, slots=True)
class Due:
    """The last time that has come, if any has, and whether so many were missed that something may be wrong."""

    at: datetime | None
    many_missed: bool = False


def due_of(cron_job: CronJob, schedule: Schedule, now: datetime) -> Due:
    """The last time since the one before, or since the CronJob is there; not those that it is too late for."""
    since, limit = _since(cron_job), cron_job.spec.starting_deadline_seconds
    if limit is not None:
        since = max(since, now - timedelta(seconds=limit))
    return _last(schedule, since, now)


def _since(cron_job: CronJob) -> datetime:
    since = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    assert since is not None
    return since


def _last(schedule: Schedule, since: datetime, now: datetime) -> Due:
    first = schedule.after(since)
    second = schedule.after(first) if first else None
    if first is None or now < first:
        return Due(None)
    if second is None or now < second:
        return Due(first)
    length = max(int((second - first).total_seconds()), 1)
    missed = int((now - first).total_seconds()) // length + 1
    last, following = None, schedule.after(first + timedelta(seconds=(missed - 2) * length))
    while following is not None and following <= now:
        last, following = following, schedule.after(following)
    return Due(last, many_missed=missed > _MANY)


def seconds_to_next(cron_job: CronJob, schedule: Schedule, now: datetime) -> float | None:
    """How long until it is due again; None if it never is."""
    last = _last(schedule, _since(cron_job), now).at or max(_since(cron_job), now)
    following = schedule.after(last)
    return None if following is None else max((following - now).total_seconds(), 0.0) + _DELTA_SECONDS
