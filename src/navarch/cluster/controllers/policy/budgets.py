"""The arithmetic of disruption budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from navarch.cluster.controllers.services.backends import is_ready
from navarch.cluster.controllers.workloads.fractions import part_of
from navarch.k8s.core.v1 import Pod
from navarch.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec

_PATIENCE: Final = timedelta(minutes=2)
"""How long an eviction that was allowed may take to show."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a budget says."""

    current: int
    desired: int
    expected: int
    disrupted: Mapping[str, datetime]

    @property
    def allowed(self) -> int:
        """How many more pods may be disturbed now."""
        return max(self.current - self.desired, 0) if self.expected > 0 else 0


def needs_scale(spec: PodDisruptionBudgetSpec) -> bool:
    """Whether it has to be known how many pods there should be: a plain number of pods needs no more than them."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def desired_healthy(spec: PodDisruptionBudgetSpec, expected: int) -> int:
    """How many pods have to be healthy, of so many that there should be."""
    if spec.max_unavailable is not None:
        return max(expected - part_of(spec.max_unavailable, expected, up=True), 0)
    return part_of(spec.min_available, expected, up=True)


def disrupted_pods(budget: PodDisruptionBudget, pods: Iterable[Pod], now: datetime) -> dict[str, datetime]:
    """Evictions that were allowed and have not shown yet, for two minutes at most."""
    staying = {pod.name for pod in pods if pod.metadata.deletion_timestamp is None}
    known = budget.status.disrupted_pods or {}
    return {name: since for name, since in known.items() if name in staying and now < since + _PATIENCE}


def verdict(budget: PodDisruptionBudget, pods: Iterable[Pod], expected: int, now: datetime) -> Verdict:
    """What the budget says of these pods, of which there should be so many."""
    pods = tuple(pods)
    disrupted = disrupted_pods(budget, pods, now)
    healthy = [
        pod for pod in pods if is_ready(pod) and pod.metadata.deletion_timestamp is None and pod.name not in disrupted
    ]
    return Verdict(len(healthy), desired_healthy(budget.spec, expected), expected, disrupted)
