"""CronJobs: Jobs by the clock. What was due a while ago is due now, so that nobody has to wait for a minute to pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import template
from conformance.controllers.watching import active_pods, for_a_while, until, until_event
from navarch._base.clock import SystemClock
from navarch.api import ObjectMeta, controller_of, format_time
from navarch.client import Client, MergePatch
from navarch.k8s.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def minutes_ago(count: int) -> datetime:
    return SystemClock().now().replace(second=0, microsecond=0) - timedelta(minutes=count)


def cron_job(schedule: str, **spec: Any) -> CronJob:
    """It rests until it is `begun`."""
    job = JobTemplateSpec(
        metadata=ObjectMeta(labels={"team": "a"}, annotations={"note": "b"}),
        spec=JobSpec(template=template(restart_policy="Never"), backoff_limit=0),
    )
    return CronJob(
        name="tick", spec=CronJobSpec(**{"schedule": schedule, "job_template": job, "suspend": True, **spec})
    )


def at(moment: datetime) -> str:
    """A schedule that was due then, and will not be again within the hour."""
    return f"{moment.minute} * * * *"


async def begin(client: Client, *, last: int) -> None:
    """It was last due so many minutes ago, and goes on from now."""
    status = {"lastScheduleTime": format_time(minutes_ago(last))}
    await client.patch(CronJob, "tick", MergePatch({"status": status}), subresource="status")
    await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": False}}))


async def jobs(client: Client) -> list[Job]:
    return sorted([job async for job in client.list(Job)], key=lambda job: job.name)


async def until_jobs(client: Client, *due: datetime) -> list[Job]:
    names = [f"tick-{int(moment.timestamp()) // 60}" for moment in due]
    return await until(lambda: jobs(client), lambda found: [each.name for each in found] == names, f"the Jobs {names}")


async def run_out(client: Client, kubelet: Kubelet, *, code: int = 0) -> None:
    """The pod that runs ends, and so does its Job, which was listed by then."""
    await until(lambda: client.get(CronJob, "tick"), lambda found: found.status.active, "a Job to be active")
    (pod,) = await until(lambda: active_pods(client), lambda pods: len(pods) == 1, "one pod")
    await kubelet.finish(pod, code=code)
    await until(lambda: client.get(CronJob, "tick"), lambda found: not found.status.active, "nothing to be active")


async def test_job_of_the_last_time_that_was_missed_is_made(client: Client, kubelet: Kubelet) -> None:
    """Named by its minute, as the template says; and what runs is listed."""
    due = minutes_ago(5)
    made = await client.create(cron_job(at(due)))
    await begin(client, last=40)
    (job,) = await until_jobs(client, due)
    owner = controller_of(job)
    assert owner is not None
    assert (owner.uid, job.labels["team"], job.annotations["note"]) == (made.metadata.uid, "a", "b")
    assert job.annotations[SCHEDULED] == format_time(due)
    found = await until(lambda: client.get(CronJob, "tick"), lambda found: found.status.active, "an active Job")
    assert [(each.name, each.uid, each.kind) for each in found.status.active or ()] == [
        (job.name, job.metadata.uid, "Job")
    ]
    assert found.status.last_schedule_time == due
    await until_event(client, "tick", "SuccessfulCreate", f"Created job {job.name}")


async def test_job_that_has_ended_is_taken_off_the_list(client: Client, kubelet: Kubelet) -> None:
    """And the time of the last success is noted."""
    due = minutes_ago(5)
    await client.create(cron_job(at(due)))
    await begin(client, last=40)
    await until_jobs(client, due)
    await run_out(client, kubelet)
    (job,) = await jobs(client)
    found = await client.get(CronJob, "tick")
    assert found.status.last_successful_time == job.status.completion_time
    await until_event(client, "tick", "SawCompletedJob", f"Saw completed job: {job.name}, condition: Complete")


async def again(client: Client, due: datetime, **spec: Any) -> None:
    """It becomes due another time, when the controller has written down what came of the last."""
    await until(
        lambda: client.get(CronJob, "tick"),
        lambda found: found.spec.suspend or (found.status.last_schedule_time or minutes_ago(60)) > minutes_ago(30),
        "the last time to be noted",
    )
    await client.patch(CronJob, "tick", MergePatch({"spec": {"suspend": True, "schedule": at(due), **spec}}))
    await begin(client, last=40)


async def test_concurrent_jobs_are_allowed_unless_said_otherwise(client: Client, kubelet: Kubelet) -> None:
    """Each runs by itself."""
    first, second = minutes_ago(9), minutes_ago(5)
    await client.create(cron_job(at(first)))
    await begin(client, last=40)
    await until_jobs(client, first)
    await again(client, second)
    await until_jobs(client, first, second)
    await until(lambda: client.get(CronJob, "tick"), lambda found: len(found.status.active or ()) == 2, "two to run")


async def test_job_is_not_made_while_another_runs_if_that_is_forbidden(client: Client, kubelet: Kubelet) -> None:
    """It is told, and the time is let go."""
    first, second = minutes_ago(9), minutes_ago(5)
    await client.create(cron_job(at(first), concurrency_policy="Forbid"))
    await begin(client, last=40)
    await until_jobs(client, first)
    await again(client, second)
    await until_event(client, "tick", "JobAlreadyActive", "Not starting job because prior execution is running")
    await for_a_while(lambda: jobs(client), lambda found: len(found) == 1, "one Job", seconds=0.3)


async def test_running_job_is_replaced_if_that_is_asked_for(client: Client, kubelet: Kubelet) -> None:
    """The one that runs is deleted first."""
    first, second = minutes_ago(9), minutes_ago(5)
    await client.create(cron_job(at(first), concurrency_policy="Replace"))
    await begin(client, last=40)
    (replaced,) = await until_jobs(client, first)
    await again(client, second)
    await until_jobs(client, second)
    await until_event(client, "tick", "SuccessfulDelete", f"Deleted job {replaced.name}")


async def test_time_that_is_too_long_ago_is_let_go(client: Client, kubelet: Kubelet) -> None:
    """Nothing is made for it."""
    await client.create(cron_job(at(minutes_ago(9)), starting_deadline_seconds=60))
    await begin(client, last=40)
    await for_a_while(lambda: jobs(client), lambda found: not found, "no Jobs", seconds=0.7)


async def test_suspended_cron_job_makes_nothing(client: Client, kubelet: Kubelet) -> None:
    """However much is due."""
    await client.create(cron_job("* * * * *"))
    status = {"lastScheduleTime": format_time(minutes_ago(9))}
    await client.patch(CronJob, "tick", MergePatch({"status": status}), subresource="status")
    await for_a_while(lambda: jobs(client), lambda found: not found, "no Jobs", seconds=0.7)


async def test_ended_jobs_are_kept_as_far_as_is_asked(client: Client, kubelet: Kubelet) -> None:
    """Those that failed and those that succeeded are counted apart; the oldest go."""
    limits = {"successful_jobs_history_limit": 1, "failed_jobs_history_limit": 1}
    times = [minutes_ago(count) for count in (20, 16, 12)]
    await client.create(cron_job(at(times[0]), **limits))
    for moment, code in zip(times, (0, 1, 0), strict=True):
        await again(client, moment)
        await until(
            lambda: jobs(client),
            lambda found, moment=moment: str(int(moment.timestamp()) // 60) in str([job.name for job in found]),  # type: ignore[misc]  # bound at once
            f"the Job of {moment}",
        )
        await run_out(client, kubelet, code=code)
    await until_jobs(client, *times[1:])


async def test_schedule_is_of_the_time_zone_that_is_named(client: Client, kubelet: Kubelet) -> None:
    """A zone that is half an hour off: the minute of the hour is another."""
    due = minutes_ago(5)
    shifted = due + timedelta(minutes=30)
    await client.create(cron_job(at(shifted), time_zone="Asia/Kolkata"))
    await begin(client, last=40)
    (job,) = await until_jobs(client, due)
    assert datetime.fromisoformat(job.annotations[SCHEDULED]).astimezone(UTC) == due
    assert job.annotations[SCHEDULED].endswith("+05:30")
