"""What a Job's policies make of a pod that failed, and of the parts that succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from navarch.cluster.controllers.workloads.jobs.indexes import Indexes, parse_indexes
from navarch.k8s.batch.v1 import (
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from navarch.k8s.core.v1 import ContainerStatus, Pod


@dataclass(frozen=True, slots=True)
class Judgement:
    """`action` is that of the rule that fits, empty if none does; `message` says why the whole Job fails."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the limits."""
        return self.action != "Ignore"


def judged(policy: PodFailurePolicy | None, pod: Pod) -> Judgement:
    """What the first rule that fits says of a pod that failed."""
    for number, rule in enumerate(policy.rules if policy else ()):
        why = _why(rule, pod)
        if why:
            message = f"{why} matching {rule.action} rule at index {number}"
            return Judgement(rule.action, message if rule.action == "FailJob" else "")
    return Judgement()


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
    """Which rule says that enough has succeeded; empty if none does."""
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
