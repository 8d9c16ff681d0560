"""The CronJob controller: creates Jobs on a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from navarch.api import ObjectMeta, controller_of
from navarch.api.schedules import Schedule, schedule_of, zone_of
from navarch.cluster.controllers.workloads.jobs.tally import is_finished
from navarch.cluster.controllers.workloads.pod_creation import is_ending, reason_of
from navarch.controller import Context, Result, any_change
from navarch.errors import AlreadyExists, InvalidValueError, NavarchError
from navarch.k8s.batch.v1 import CronJob, Job
from navarch.k8s.core.v1 import ObjectReference
from navarch.operator import Operator

_MANY = 100
_DELTA_SECONDS = 0.1
"""So that a clock that is a little slow does not look too soon."""


@dataclass(frozen=True, slots=True)
class Due:
    """The last due time, if there is one, and whether suspiciously many times were missed."""

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


_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def declare_cron_jobs(operator: Operator) -> None:
    """Adds the controller of CronJobs."""
    operator.controller(CronJob, owns=(Job,), when=any_change, name="cronjob")(_reconcile)


async def _reconcile(cron_job: CronJob, ctx: Context) -> Result | None:
    await _forget_old(cron_job, ctx)
    _follow(cron_job, ctx.owned(Job), ctx)
    schedule = None if cron_job.spec.suspend else _schedule(cron_job, ctx)
    if schedule is None:
        return None
    now = ctx.now()
    due = due_of(cron_job, schedule, now)
    if due.many_missed:
        note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        ctx.event("TooManyMissedTimes", note, type="Warning")
    if due.at is not None and not _is_late(cron_job, due.at, ctx) and await _may_start(cron_job, due.at, ctx):
        await _start(cron_job, due.at, ctx)
    seconds = seconds_to_next(cron_job, schedule, now)
    return None if seconds is None else Result(after=seconds)


def _schedule(cron_job: CronJob, ctx: Context) -> Schedule | None:
    """When it is due; None, and that is told, if that cannot be understood."""
    spec = cron_job.spec
    try:
        zone = zone_of(spec.time_zone)
    except InvalidValueError:
        ctx.event("UnknownTimeZone", f'invalid timeZone: "{spec.time_zone}": unknown time zone', type="Warning")
        return None
    if "TZ" in spec.schedule:
        note = f'CRON_TZ or TZ used in schedule "{spec.schedule}" is not officially supported'
        ctx.event("UnsupportedSchedule", note, type="Warning")
    try:
        return schedule_of(spec.schedule, zone)
    except InvalidValueError as error:
        ctx.event("UnparseableSchedule", f'unparseable schedule: "{spec.schedule}" : {error}', type="Warning")
        return None


def _follow(cron_job: CronJob, jobs: Sequence[Job], ctx: Context) -> None:
    """Takes what has ended, or is gone, off the list of what runs."""
    status, by_uid = cron_job.status, {job.metadata.uid: job for job in jobs}
    left = []
    for reference in status.active or ():
        job = by_uid.get(reference.uid or "")
        ended = is_finished(job) if job else None
        if job is None:
            ctx.event("MissingJob", f"Active job went missing: {reference.name}")
        elif ended is not None:
            ctx.event("SawCompletedJob", f"Saw completed job: {job.name}, condition: {ended.type}")
        else:
            left.append(reference)
    status.active = left or None
    ends = [job.status.completion_time for job in jobs if job.status.completion_time is not None]
    status.last_successful_time = max([*ends, *filter(None, [status.last_successful_time])], default=None)


async def _forget_old(cron_job: CronJob, ctx: Context) -> None:
    """Of the Jobs that have ended, the last few are kept for whoever wants to look at them."""
    finished = {job.name: (job, end) for job in ctx.owned(Job) if (end := is_finished(job)) is not None}
    limits = {
        "Complete": cron_job.spec.successful_jobs_history_limit,
        "Failed": cron_job.spec.failed_jobs_history_limit,
    }
    for kind, limit in limits.items():
        jobs = sorted((job for job, end in finished.values() if end.type == kind), key=_begun)
        for job in jobs[: len(jobs) - limit] if limit is not None and limit < len(jobs) else ():
            await _delete(cron_job, job, ctx)


def _begun(job: Job) -> tuple[bool, float, str]:
    start = job.status.start_time
    return start is None, (start.timestamp() if start else 0.0), job.name


async def _delete(cron_job: CronJob, job: Job, ctx: Context) -> None:
    await ctx.delete(job)
    left = [each for each in cron_job.status.active or () if each.uid != job.metadata.uid]
    cron_job.status.active = left or None
    ctx.event("SuccessfulDelete", f"Deleted job {job.name}")


def _is_late(cron_job: CronJob, at: datetime, ctx: Context) -> bool:
    limit = cron_job.spec.starting_deadline_seconds
    if limit is None or at + timedelta(seconds=limit) >= ctx.now():
        return False
    moment = at.strftime("%a, %d %b %Y %H:%M:%S +0000")
    ctx.event("MissSchedule", f"Missed scheduled time to start a job: {moment}", type="Warning")
    return True


async def _may_start(cron_job: CronJob, at: datetime, ctx: Context) -> bool:
    """Returns True if this time was not dealt with yet, and others that still run do not speak against it."""
    active = cron_job.status.active or []
    if cron_job.status.last_schedule_time == at or _job_name(cron_job, at) in {each.name for each in active}:
        return False
    if active and cron_job.spec.concurrency_policy == "Forbid":
        note = "Not starting job because prior execution is running and concurrency policy is Forbid"
        ctx.event("JobAlreadyActive", note)
        return False
    if cron_job.spec.concurrency_policy == "Replace":
        running = {each.uid for each in active}
        for job in ctx.owned(Job):
            if job.metadata.uid in running:
                await _delete(cron_job, job, ctx)
    return True


def _job_name(cron_job: CronJob, at: datetime) -> str:
    """The same for the same minute: no second Job can be made for it."""
    return f"{cron_job.name}-{int(at.timestamp()) // 60}"


async def _start(cron_job: CronJob, at: datetime, ctx: Context) -> None:
    job = await _created(cron_job, _job(cron_job, at), ctx)
    if job is None:
        return
    reference = ObjectReference(
        api_version="batch/v1",
        kind="Job",
        name=job.name,
        namespace=job.namespace,
        uid=job.metadata.uid,
        resource_version=job.metadata.resource_version,
    )
    cron_job.status.active = [*(cron_job.status.active or ()), reference]
    cron_job.status.last_schedule_time = at


async def _created(cron_job: CronJob, wanted: Job, ctx: Context) -> Job | None:
    """The Job; None if another one has its name, or the namespace is going."""
    try:
        job = await ctx.create(wanted)
    except AlreadyExists:
        found = await ctx.get(Job, wanted.name)
        owner = controller_of(found) if found is not None else None
        return found if owner is not None and owner.uid == cron_job.metadata.uid else None
    except NavarchError as error:
        if is_ending(error):
            return None
        ctx.event("FailedCreate", f"Error creating job: {reason_of(error)}", type="Warning")
        raise
    ctx.event("SuccessfulCreate", f"Created job {job.name}")
    return job


def _job(cron_job: CronJob, at: datetime) -> Job:
    template = cron_job.spec.job_template
    local = at.astimezone(zone_of(cron_job.spec.time_zone)).isoformat(timespec="seconds")
    metadata = ObjectMeta(
        name=_job_name(cron_job, at),
        labels=dict(template.metadata.labels),
        annotations={**template.metadata.annotations, _SCHEDULED: local.replace("+00:00", "Z")},
    )
    return Job(metadata=metadata, spec=template.spec)
