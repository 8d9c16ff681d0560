"""Whether a Job is over, and why."""

from __future__ import annotations

from datetime import datetime, timedelta

from navarch.api import truncate_to_seconds
from navarch.cluster.controllers.workloads.jobs.policies import judged, success_of
from navarch.cluster.controllers.workloads.jobs.tally import Tally, is_indexed
from navarch.k8s.batch.v1 import Job, JobCondition

_TARGETS = ("SuccessCriteriaMet", "FailureTarget")
_ENDS = ("Complete", "Failed")


def new_condition(kind: str, reason: str, message: str, now: datetime, status: str = "True") -> JobCondition:
    """A condition as of now."""
    moment = truncate_to_seconds(now)
    return JobCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_probe_time=moment,
        last_transition_time=moment,
    )


def condition_of(job: Job, kind: str) -> JobCondition | None:
    """The condition of that type, if it holds."""
    conditions = job.status.conditions or ()
    return next((each for each in conditions if each.type == kind and each.status == "True"), None)


def is_finished(job: Job) -> JobCondition | None:
    """How it ended, if it has."""
    return next(filter(None, (condition_of(job, kind) for kind in _ENDS)), None)


def known_target(job: Job) -> JobCondition | None:
    """How it is going to end, if that is written down."""
    return next(filter(None, (condition_of(job, kind) for kind in _TARGETS)), None)


def target_of(tally: Tally, now: datetime) -> JobCondition | None:
    """How it is going to end, while pods may still run; None if that is open."""
    known = known_target(tally.job)
    if known is not None:
        return known
    reason, message = _failure(tally, now)
    if reason:
        return new_condition("FailureTarget", reason, message, now)
    return _policy_success(tally, now)


def _failure(tally: Tally, now: datetime) -> tuple[str, str]:
    job = tally.job
    failed = (pod for pod in tally.pods if tally.is_failed(pod))
    message = next(filter(None, (judged(job.spec.pod_failure_policy, pod).message for pod in failed)), "")
    if message:
        return "PodFailurePolicy", message
    limit = 6 if job.spec.backoff_limit is None else job.spec.backoff_limit
    if tally.failed > limit or _restarts_too_often(tally, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = deadline_left(job, now)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _failure_of_indexes(tally)


def _restarts_too_often(tally: Tally, limit: int) -> bool:
    """Restarts of containers count as failures where the node restarts them."""
    if tally.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts: int = sum(
        container.restart_count
        for pod in tally.pods
        if pod.status.phase in {"Running", "Pending"}
        for container in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    )
    return restarts >= max(limit, 1)


def _failure_of_indexes(tally: Tally) -> tuple[str, str]:
    failed, spec = tally.failed_indexes, tally.job.spec
    if not failed:
        return "", ""
    if spec.max_failed_indexes is not None and len(failed) > spec.max_failed_indexes:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if len(failed) + tally.succeeded >= (spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return "", ""


def _policy_success(tally: Tally, now: datetime) -> JobCondition | None:
    spec = tally.job.spec
    if not is_indexed(tally.job):
        return None
    message = success_of(spec.success_policy, spec.completions or 0, tally.succeeded_indexes)
    return new_condition("SuccessCriteriaMet", "SuccessPolicy", message, now) if message else None


def completed(tally: Tally, active: int, now: datetime) -> JobCondition | None:
    """That all is done, if it is: as often as asked for, or where no number is given once, and nothing runs any more."""
    completions = tally.job.spec.completions
    enough = tally.succeeded >= (1 if completions is None else completions)
    if not enough or active:
        return None
    return new_condition("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now)


def deadline_left(job: Job, now: datetime) -> float | None:
    """How many seconds it may still run; None if it is not limited, or does not run."""
    limit, begun = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or begun is None or job.spec.suspend:
        return None
    return (begun + timedelta(seconds=limit) - now).total_seconds()
