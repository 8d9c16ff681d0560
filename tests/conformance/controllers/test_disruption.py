"""Disruption budgets: what they count, and what evictions they allow."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import LABELS, SELECTOR, template
from conformance.controllers.watching import active_pods, until, until_event
from navarch.client import Client
from navarch.errors import TooManyRequests
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import Container, Pod, PodSpec
from navarch.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec

pytestmark = pytest.mark.usefixtures("kubelet")

Numbers = tuple[int | None, int | None, int | None, int | None]


def budget(**spec: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget(name="web", spec=PodDisruptionBudgetSpec(selector=SELECTOR, **spec))


async def running(client: Client, replicas: int) -> None:
    """A deployment whose pods are all ready."""
    await client.create(
        Deployment(name="web", spec=DeploymentSpec(replicas=replicas, selector=SELECTOR, template=template()))
    )
    await until(
        lambda: client.get(Deployment, "web"), lambda found: found.status.ready_replicas == replicas, "ready pods"
    )


def numbers(found: PodDisruptionBudget) -> Numbers:
    """Expected, desired, healthy, allowed."""
    status = found.status
    return (status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed)


async def until_numbers(client: Client, expected: Numbers) -> PodDisruptionBudget:
    return await until(
        lambda: client.get(PodDisruptionBudget, "web"),
        lambda found: numbers(found) == expected and found.status.observed_generation == found.metadata.generation,
        f"expected, desired, healthy and allowed to be {expected}",
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"min_available": 2}, (3, 2, 3, 1)),
        ({"min_available": "50%"}, (3, 2, 3, 1)),
        ({"max_unavailable": 1}, (3, 2, 3, 1)),
        ({"max_unavailable": "50%"}, (3, 1, 3, 2)),
        ({"min_available": 5}, (3, 5, 3, 0)),
    ],
    ids=str,
)
async def test_budget_counts_pods(client: Client, spec: dict[str, Any], expected: Numbers) -> None:
    """A part of how many there should be is rounded up."""
    await running(client, 3)
    await client.create(budget(**spec))
    found = await until_numbers(client, expected)
    condition = next(each for each in found.status.conditions or () if each.type == "DisruptionAllowed")
    reason = "SufficientPods" if expected[3] else "InsufficientPods"
    assert (condition.status, condition.reason) == ("True" if expected[3] else "False", reason)


async def test_budget_follows_its_pods(client: Client, kubelet: Kubelet) -> None:
    """A pod that is not ready is not healthy."""
    await running(client, 2)
    await client.create(budget(max_unavailable=1))
    await until_numbers(client, (2, 1, 2, 1))
    pod = (await active_pods(client))[0]
    await kubelet.start(pod, ready=False)
    await until_numbers(client, (2, 1, 1, 0))
    await kubelet.start(pod)
    await until_numbers(client, (2, 1, 2, 1))


async def test_evictions_keep_to_the_budget(client: Client, kubelet: Kubelet) -> None:
    """One may go, the next has to wait until there is another in its place."""
    kubelet.keeps = kubelet.holds = lambda pod: pod.metadata.deletion_timestamp is not None
    await running(client, 2)
    await client.create(budget(max_unavailable=1))
    await until_numbers(client, (2, 1, 2, 1))
    kubelet.holds = lambda _: True
    first, second = await active_pods(client)
    await client.evict(first.name)
    with pytest.raises(TooManyRequests, match="disruption budget"):
        await client.evict(second.name)
    kubelet.keeps = kubelet.holds = lambda _: False
    await until_numbers(client, (2, 1, 2, 1))
    await client.evict(second.name)


async def test_budget_without_pods_allows_nothing(client: Client) -> None:
    """An event says that there are none."""
    await client.create(budget(max_unavailable=1))
    await until_numbers(client, (0, 0, 0, 0))
    await until_event(client, "web", "NoPods", "No matching pods found")


async def test_pods_of_nobody_count_only_as_a_number(client: Client) -> None:
    """How many there should be is not known of them."""
    pod = Pod(name="alone", labels=LABELS, spec=PodSpec(containers=[Container(name="main", image="none")]))
    await client.create(pod)
    await client.create(budget(min_available=1))
    await until_numbers(client, (1, 1, 1, 0))
