"""How far a Job has come: what its pods say, on top of what its status has counted already.

Every pod has a finalizer until it is counted, so that none is missed or counted twice: first the status names it as not
counted yet, then its finalizer goes, then it is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from navarch.api import truncate_to_seconds
from navarch.api.integers import parse_int64
from navarch.cluster.controllers.workloads.jobs.indexes import Indexes, index_of, parse_indexes
from navarch.cluster.controllers.workloads.jobs.pod_failures import finished_at, judged, success_of
from navarch.cluster.controllers.workloads.pods import is_active, is_deleting, is_terminating
from navarch.k8s.batch.v1 import Job, JobCondition, UncountedTerminatedPods
from navarch.k8s.core.v1 import Pod

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
    """Returns how many seconds it may still run; None if it is not limited, or does not run."""
    limit, begun = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or begun is None or job.spec.suspend:
        return None
    return (begun + timedelta(seconds=limit) - now).total_seconds()


FINALIZER = "batch.kubernetes.io/job-tracking"

_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


def is_indexed(job: Job) -> bool:
    """Returns True if each pod has a part of the work that is its own."""
    return job.spec.completion_mode == "Indexed"


def is_tracked(pod: Pod) -> bool:
    """Returns True if it has not been counted yet."""
    return FINALIZER in pod.metadata.finalizers


def replaces_failed_only(job: Job) -> bool:
    """Returns True if a pod on its way out is replaced only when it has ended."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def failures_of_index(pod: Pod | None) -> tuple[int, int]:
    """How often the part of the work that is the pod's had failed before: what counts, and what does not."""
    if pod is None:
        return 0, 0
    texts = (pod.annotations.get(name, "") for name in (_FAILURES, _IGNORED))
    counted, ignored = (parse_int64(text) or 0 for text in texts)
    return counted, ignored


def uncounted_of(job: Job) -> tuple[set[str], set[str]]:
    """The uids of the pods that the status names as not counted yet: succeeded, and failed."""
    known = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    return set(known.succeeded or ()), set(known.failed or ())


@dataclass(frozen=True)
class Tally:
    """A Job and the current state of its pods."""

    job: Job
    pods: list[Pod]

    @cached_property
    def active(self) -> list[Pod]:
        """The pods that run, or will."""
        return [pod for pod in self.pods if is_active(pod)]

    @cached_property
    def terminating(self) -> list[Pod]:
        """The pods that are to go, and may still run."""
        return [pod for pod in self.pods if is_terminating(pod)]

    def is_failed(self, pod: Pod) -> bool:
        """Returns True if it failed; one that is on its way out counts as failed, unless it is to be waited for."""
        if pod.status.phase == "Failed":
            return True
        return is_deleting(pod) and pod.status.phase != "Succeeded" and not replaces_failed_only(self.job)

    def is_valid(self, pod: Pod) -> bool:
        """Returns True if it works on a part of the work that there is."""
        index = index_of(pod)
        return not is_indexed(self.job) or (index is not None and index < (self.job.spec.completions or 0))

    @cached_property
    def new_succeeded(self) -> list[Pod]:
        """Those that succeeded and that the status does not know of."""
        return [pod for pod in self._new if pod.status.phase == "Succeeded"]

    @cached_property
    def new_failed(self) -> list[Pod]:
        """Those that failed and that the status does not know of."""
        return [pod for pod in self._new if self.is_failed(pod)]

    @cached_property
    def _new(self) -> list[Pod]:
        known = set().union(*uncounted_of(self.job))
        return [pod for pod in self.pods if is_tracked(pod) and pod.metadata.uid not in known and self.is_valid(pod)]

    @cached_property
    def completed(self) -> Indexes:
        """The indexes that the status knows as done."""
        return parse_indexes(self.job.status.completed_indexes, self.job.spec.completions or 0)

    @cached_property
    def succeeded_indexes(self) -> Indexes:
        """The indexes that are done."""
        return self.completed | _indexes(pod for pod in self.new_succeeded)

    @cached_property
    def failed_indexes(self) -> Indexes | None:
        """The indexes that have failed for good; None if failures are not counted for each."""
        limit = self.job.spec.backoff_limit_per_index
        if limit is None or not is_indexed(self.job):
            return None
        known = parse_indexes(self.job.status.failed_indexes, self.job.spec.completions or 0)
        tracked = (pod for pod in self.pods if is_tracked(pod) and self.is_valid(pod) and self.is_failed(pod))
        return known | _indexes(pod for pod in tracked if self._is_final(pod, limit))

    def _is_final(self, pod: Pod, limit: int) -> bool:
        judgement = judged(self.job.spec.pod_failure_policy, pod)
        if judgement.action == "FailIndex":
            return True
        return judgement.counts and failures_of_index(pod)[0] >= limit

    @cached_property
    def succeeded(self) -> int:
        """Returns how many pods, or indexes, have succeeded."""
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        return (self.job.status.succeeded or 0) + len(uncounted_of(self.job)[0]) + len(self.new_succeeded)

    @cached_property
    def failed(self) -> int:
        """Returns how many pods have failed, those left out that a policy ignores."""
        counted = [pod for pod in self.new_failed if judged(self.job.spec.pod_failure_policy, pod).counts]
        return (self.job.status.failed or 0) + len(uncounted_of(self.job)[1]) + len(counted)

    @cached_property
    def to_replace(self) -> dict[int, Pod]:
        """The last failed pod of each index that is to be tried again: it stays until its successor knows its count."""
        failed = self.failed_indexes
        if failed is None:
            return {}
        busy = self.succeeded_indexes | failed | _indexes(self.active)
        found: dict[int, Pod] = {}
        for pod in sorted((pod for pod in self.pods if is_tracked(pod) and self.is_failed(pod)), key=_standing):
            index = index_of(pod)
            if index is not None and self.is_valid(pod) and index not in busy:
                found[index] = pod
        return found

    @cached_property
    def busy_indexes(self) -> Indexes:
        """The indexes that need no new pod."""
        waiting = _indexes(self.terminating) if replaces_failed_only(self.job) else Indexes()
        return self.succeeded_indexes | (self.failed_indexes or Indexes()) | _indexes(self.active) | waiting


def _indexes(pods: Iterable[Pod]) -> Indexes:
    return Indexes.of(index for pod in pods if (index := index_of(pod)) is not None)


def _standing(pod: Pod) -> tuple[int, float]:
    return sum(failures_of_index(pod)), finished_at(pod).timestamp()
