"""Pod failures of a Job: backoff, pod failure policy and success policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from navarch.cluster.controllers.workloads.jobs.indexes import Indexes, parse_indexes
from navarch.k8s.batch.v1 import (
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from navarch.k8s.core.v1 import ContainerStatus, Pod

_FIRST_SECONDS = 10
_LONGEST_SECONDS = 600
_MOST_DOUBLINGS = 6


def delay_of_pods(succeeded: Sequence[Pod], failed: Sequence[Pod], now: datetime) -> float:
    """Returns how many seconds from now a pod may be made: failures since the last success count."""
    last_success = max(map(finished_at, succeeded), default=None)
    failures = [pod for pod in failed if last_success is None or finished_at(pod) > last_success]
    return delay_left(len(failures), max(map(finished_at, failed), default=now), now)


def delay_left(failures: int, last: datetime, now: datetime) -> float:
    """What is left of the delay after so many failures, the last of which was then; doubled each time."""
    if not failures:
        return 0.0
    seconds = min(_FIRST_SECONDS << min(failures - 1, _MOST_DOUBLINGS), _LONGEST_SECONDS)
    return max(seconds - (now - last).total_seconds(), 0.0)


def finished_at(pod: Pod) -> datetime:
    """When its last container ended; as far as can be told, when it stopped being ready, or was to go."""
    ended = _last_end(pod.status.container_statuses or ())
    if ended is not None:
        return ended
    for condition in pod.status.conditions or ():
        if condition.type == "Ready" and condition.status == "False" and condition.last_transition_time:
            return condition.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None
    return metadata.creation_timestamp


def _last_end(containers: Iterable[ContainerStatus]) -> datetime | None:
    """None if one of them has not ended."""
    last = None
    for container in containers:
        ended = container.state.terminated if container.state else None
        if ended is None or ended.finished_at is None:
            return None
        last = ended.finished_at if last is None else max(last, ended.finished_at)
    return last


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """`action` is that of the rule that fits, empty if none does; `message` says why the whole Job fails."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Returns True if the failure counts towards the limits."""
        return self.action != "Ignore"


def judged(policy: PodFailurePolicy | None, pod: Pod) -> FailureVerdict:
    """What the first rule that fits says of a pod that failed."""
    for number, rule in enumerate(policy.rules if policy else ()):
        why = _why(rule, pod)
        if why:
            message = f"{why} matching {rule.action} rule at index {number}"
            return FailureVerdict(rule.action, message if rule.action == "FailJob" else "")
    return FailureVerdict()


def _why(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """In which way the rule fits; empty if it does not."""
    where = f"{pod.namespace}/{pod.name}"
    if rule.on_exit_codes is not None:
        every = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
        found = _ended_so(rule.on_exit_codes, every)
        return f"Container {found[0]} for pod {where} failed with exit code {found[1]}" if found else ""
    patterns = {(each.type, each.status or "True") for each in rule.on_pod_conditions or ()}
    conditions = (each.type for each in pod.status.conditions or () if (each.type, each.status) in patterns)
    condition = next(conditions, "")
    return f"Pod {where} has condition {condition}" if condition else ""


def _ended_so(
    wanted: PodFailurePolicyOnExitCodesRequirement, containers: Iterable[ContainerStatus]
) -> tuple[str, int] | None:
    """The name and the exit code of the first container that ended in that way."""
    for container in containers:
        ended = container.state.terminated if container.state else None
        if ended is None or not ended.exit_code or wanted.container_name not in {None, container.name}:
            continue
        if (ended.exit_code in wanted.values) == (wanted.operator == "In"):
            return container.name, ended.exit_code
    return None


def success_of(policy: SuccessPolicy | None, completions: int, succeeded: Indexes) -> str:
    """Returns which rule says that enough has succeeded; empty if none does."""
    for number, rule in enumerate(policy.rules if policy else ()):
        if succeeded and _is_met(rule, completions, succeeded):
            return f"Matched rules at index {number}"
    return ""


def _is_met(rule: SuccessPolicyRule, completions: int, succeeded: Indexes) -> bool:
    count = rule.succeeded_count
    if rule.succeeded_indexes is None:
        return count is not None and len(succeeded) >= count
    wanted = parse_indexes(rule.succeeded_indexes, completions)
    done = wanted.common(succeeded)
    return bool(wanted) and (done == len(wanted) or (count is not None and done >= count))
