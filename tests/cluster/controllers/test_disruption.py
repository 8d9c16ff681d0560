"""The arithmetic of disruption budgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from navarch.cluster.controllers.policy.disruption import desired_healthy, verdict
from navarch.k8s.core.v1 import Container, Pod, PodCondition, PodSpec, PodStatus
from navarch.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(name: str, *, ready: bool = True, leaving: bool = False) -> Pod:
    status = PodStatus(conditions=[PodCondition(type="Ready", status="True" if ready else "False")])
    found = Pod(name=name, spec=PodSpec(containers=[Container(name="main")]), status=status)
    found.metadata.deletion_timestamp = NOW if leaving else None
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"min_available": 2}, 2),
        ({"min_available": "50%"}, 3),
        ({"max_unavailable": 2}, 3),
        ({"max_unavailable": "50%"}, 2),
        ({"max_unavailable": 9}, 0),
        ({"max_unavailable": 0}, 5),
    ],
    ids=str,
)
def test_parts_are_rounded_up(spec: dict[str, Any], expected: int) -> None:
    """Of five pods that there should be; never less than none."""
    assert desired_healthy(PodDisruptionBudgetSpec(**spec), 5) == expected


def test_pods_that_are_leaving_or_not_ready_are_not_healthy() -> None:
    """Nor are those whose eviction was allowed and has not shown yet."""
    budget = PodDisruptionBudget(spec=PodDisruptionBudgetSpec(min_available=1))
    budget.status.disrupted_pods = {"evicted": NOW, "forgotten": NOW - timedelta(minutes=3), "gone": NOW}
    pods = [pod("well"), pod("sick", ready=False), pod("leaving", leaving=True), pod("evicted"), pod("forgotten")]
    found = verdict(budget, pods, 5, NOW)
    assert (found.current, found.desired, found.allowed) == (2, 1, 1)
    assert found.disrupted == {"evicted": NOW}


def test_budget_for_no_pods_allows_nothing() -> None:
    """There is nothing to disturb."""
    budget = PodDisruptionBudget(spec=PodDisruptionBudgetSpec(max_unavailable=1))
    assert verdict(budget, [], 0, NOW).allowed == 0
