"""The order in which surplus pods are deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from navarch.api import ObjectMeta
from navarch.cluster.controllers.workloads.pods import least_loss_first
from navarch.k8s.core.v1 import Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(
    name: str,
    *,
    node: str | None = "n",
    phase: str = "Running",
    ready: float | None = 100,
    created: float = 1000,
    restarts: int = 0,
    cost: str = "",
) -> Pod:
    """Ages in seconds; `ready` is None for one that is not."""
    conditions = (
        []
        if ready is None
        else [PodCondition(type="Ready", status="True", last_transition_time=NOW - timedelta(seconds=ready))]
    )
    statuses = [ContainerStatus(name="c", image="", image_id="", ready=True, restart_count=restarts)]
    annotations = {"controller.kubernetes.io/pod-deletion-cost": cost} if cost else {}
    return Pod(
        metadata=ObjectMeta(
            name=name, uid=name, creation_timestamp=NOW - timedelta(seconds=created), annotations=annotations
        ),
        spec=PodSpec(containers=[Container(name="c")], node_name=node),
        status=PodStatus(phase=phase, conditions=conditions, container_statuses=statuses),
    )


def first_to_go(*pods: Pod, related: tuple[Pod, ...] = ()) -> str:
    return least_loss_first(pods, related or pods, NOW)[0].name


@pytest.mark.parametrize(
    "less",
    [
        {"node": None},
        {"phase": "Pending"},
        {"phase": "Unknown"},
        {"ready": None},
        {"cost": "-1"},
        {"ready": 10},
        {"restarts": 3},
        {"created": 100},
    ],
    ids=lambda less: next(iter(less)),
)
def test_lesser_pod_goes_first(less: dict[str, Any]) -> None:
    """Whichever stands first, and whatever its name."""
    worse, better = pod("z", **less), pod("a")
    assert first_to_go(worse, better) == first_to_go(better, worse) == "z"


def test_pod_on_a_crowded_node_goes_first() -> None:
    """So that those that stay are spread; pods of relatives count too."""
    lonely, crowded, relative = pod("a", node="one"), pod("z", node="two"), pod("r", node="two")
    assert first_to_go(lonely, crowded, related=(lonely, crowded, relative)) == "z"


def test_ages_that_are_alike_are_left_to_chance() -> None:
    """Within a factor of two the uid decides, which nobody chose."""
    assert first_to_go(pod("a", ready=1000), pod("z", ready=800)) == "a"


def test_cost_that_is_no_number_counts_as_none() -> None:
    """Nothing is deleted first because of a slip."""
    assert first_to_go(pod("z", cost="cheap"), pod("a", cost="-1")) == "a"
