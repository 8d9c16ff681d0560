"""ReplicaSets: as many pods as are asked for, whatever happens to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import LABELS, SELECTOR, template
from conformance.controllers.watching import active_pods, for_a_while, pods_of, ready_since, until, until_event
from navarch._base.clock import SystemClock
from navarch.api import controller_of
from navarch.client import Client, MergePatch
from navarch.k8s.apps.v1 import ReplicaSet, ReplicaSetSpec
from navarch.k8s.core.v1 import Container, Pod, PodSpec


def replica_set(replicas: int, **spec: Any) -> ReplicaSet:
    return ReplicaSet(
        name="web", spec=ReplicaSetSpec(**{"replicas": replicas, "selector": SELECTOR, "template": template(), **spec})
    )


def bare_pod(name: str, labels: dict[str, str] = LABELS) -> Pod:
    return Pod(name=name, labels=labels, spec=PodSpec(containers=[Container(name="main", image="first")]))


async def until_pods(client: Client, count: int) -> list[Pod]:
    return await until(lambda: active_pods(client), lambda pods: len(pods) == count, f"{count} pods")


async def until_status(client: Client, what: str, **counts: int | None) -> ReplicaSet:
    return await until(
        lambda: client.get(ReplicaSet, "web"),
        lambda found: all(getattr(found.status, name) == value for name, value in counts.items()),
        f"{what}: {counts}",
    )


async def test_pods_come_and_go_with_the_number_asked_for(client: Client, kubelet: Kubelet) -> None:
    """They are the template's, belong to the ReplicaSet, and are counted in its status."""
    await client.create(replica_set(3))
    ready = await until_status(
        client, "three that serve", replicas=3, ready_replicas=3, available_replicas=3, fully_labeled_replicas=3
    )
    assert ready.status.observed_generation == ready.metadata.generation
    assert ready.status.terminating_replicas == 0
    for pod in await until_pods(client, 3):
        owner = controller_of(pod)
        assert owner is not None
        assert (owner.uid, owner.block_owner_deletion, pod.name[:4], pod.labels) == (
            ready.metadata.uid,
            True,
            "web-",
            LABELS,
        )
        await until_event(client, "web", "SuccessfulCreate", f"Created pod: {pod.name}")
    await client.scale(ReplicaSet, "web", 1)
    await until_pods(client, 1)
    await until_status(client, "one that serves", replicas=1, ready_replicas=1, observed_generation=2)
    await until_event(client, "web", "SuccessfulDelete", "Deleted pod: web-")
    await client.scale(ReplicaSet, "web", 0)
    await until_status(client, "none", replicas=0, ready_replicas=None)


async def test_pod_that_is_lost_or_has_ended_is_replaced(client: Client, kubelet: Kubelet) -> None:
    """One that has ended stays for whoever wants to look at it, and is not counted."""
    await client.create(replica_set(2))
    first, second = await until_pods(client, 2)
    await client.delete(Pod, first.name)
    await until(
        lambda: active_pods(client),
        lambda pods: len(pods) == 2 and first.name not in {pod.name for pod in pods},
        "another pod",
    )
    await until_status(client, "both serve", ready_replicas=2)
    await kubelet.finish(second, code=1)
    await until_pods(client, 2)
    assert second.name in {pod.name for pod in await pods_of(client)}
    await until_status(client, "both serve again", replicas=2, ready_replicas=2)


async def test_orphan_that_matches_is_adopted_and_what_no_longer_matches_is_let_go(
    client: Client, kubelet: Kubelet
) -> None:
    """Neither is restarted; the number stays what was asked for."""
    await client.create(bare_pod("early"))
    await client.create(bare_pod("stranger", {"app": "other"}))
    made = await client.create(replica_set(2))
    adopted = await until(lambda: client.get(Pod, "early"), controller_of, "an owner of early")
    assert [(owner.uid, owner.controller) for owner in adopted.metadata.owner_references] == [(made.metadata.uid, True)]
    await until_status(client, "two with the adopted one", replicas=2)
    await client.patch(Pod, "early", MergePatch({"metadata": {"labels": {"app": "retired"}}}))
    released = await until(lambda: client.get(Pod, "early"), lambda pod: not controller_of(pod), "early on its own")
    assert released.metadata.uid == adopted.metadata.uid
    await until(lambda: active_pods(client, "app=web"), lambda pods: len(pods) == 2, "two pods")
    assert controller_of(await client.get(Pod, "stranger")) is None


async def test_surplus_orphan_is_adopted_and_deleted(client: Client, kubelet: Kubelet) -> None:
    """A ReplicaSet that has enough takes in one more, and chooses the least loss."""
    await client.create(replica_set(1))
    await until_status(client, "one that serves", ready_replicas=1)
    (serving,) = await until_pods(client, 1)
    kubelet.holds = lambda pod: pod.name == "late"
    await client.create(bare_pod("late"))
    await until(
        lambda: active_pods(client), lambda pods: [pod.name for pod in pods] == [serving.name], "late to be gone"
    )


async def test_least_loss_goes_first(client: Client, kubelet: Kubelet) -> None:
    """What is not ready before what is; then what costs less."""
    await client.create(replica_set(4))
    await until_status(client, "all serve", ready_replicas=4)
    cheap, unready, dear, plain = await until_pods(client, 4)
    await kubelet.start(unready, ready=False)
    for pod, cost in ((cheap, "-5"), (dear, "10")):
        note = {"controller.kubernetes.io/pod-deletion-cost": cost}
        await client.patch(Pod, pod.name, MergePatch({"metadata": {"annotations": note}}))
    await until_status(client, "one not ready", ready_replicas=3)
    for size, left in ((3, (cheap, dear, plain)), (2, (dear, plain)), (1, (dear,))):
        await client.scale(ReplicaSet, "web", size)
        names = {pod.name for pod in left}
        await until(
            lambda: active_pods(client),
            lambda pods, names=names: {pod.name for pod in pods} == names,  # type: ignore[misc]  # bound at once
            f"{names} to stay",
        )


async def test_pod_is_available_after_it_was_ready_for_long_enough(client: Client, kubelet: Kubelet) -> None:
    """And somebody looks again by then."""
    await client.create(replica_set(1, min_ready_seconds=3600))
    await until_status(client, "one ready", ready_replicas=1, available_replicas=None)
    since, clock = ready_since((await until_pods(client, 1))[0]), SystemClock()
    enough = (clock.now() - since) // timedelta(seconds=1) + 2
    await client.patch(ReplicaSet, "web", MergePatch({"spec": {"minReadySeconds": enough}}))
    await until_status(client, "one available", ready_replicas=1, available_replicas=1)
    assert clock.now() - since >= timedelta(seconds=enough)


async def test_pod_on_its_way_out_counts_as_terminating(client: Client, kubelet: Kubelet) -> None:
    """It is replaced at once, and counted until it is gone."""
    kubelet.node, kubelet.keeps = "node-1", lambda pod: True
    await client.create(replica_set(1, template=template(termination_grace_period_seconds=30)))
    await until_status(client, "one serves", ready_replicas=1)
    (pod,) = await until_pods(client, 1)
    await client.delete(Pod, pod.name)
    await until_status(client, "one comes as one goes", ready_replicas=1, terminating_replicas=1)
    kubelet.keeps = lambda pod: False
    await until_status(client, "all that went is gone", terminating_replicas=0, replicas=1)


async def test_failure_to_make_pods_is_told_and_ends_when_they_can_be_made(client: Client, kubelet: Kubelet) -> None:
    """As a condition with the server's own words, and as an event; what can be made is made."""
    await client.create(replica_set(2, template=template(service_account_name="nobody")))
    failing = await until(lambda: client.get(ReplicaSet, "web"), lambda found: found.status.conditions, "a condition")
    (condition,) = failing.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("ReplicaFailure", "True", "FailedCreate")
    assert 'serviceaccount "nobody" not found' in (condition.message or "")
    await until_event(client, "web", "FailedCreate", "Error creating: pods ")
    await for_a_while(lambda: active_pods(client), lambda pods: not pods, "no pods", seconds=0.3)
    await client.scale(ReplicaSet, "web", 0)
    await until_status(client, "no more trouble", conditions=None, replicas=0)


async def test_status_that_somebody_else_writes_is_put_right(client: Client, kubelet: Kubelet) -> None:
    """A status is what there is, whoever says something else."""
    await client.create(replica_set(1))
    await until_status(client, "one that serves", ready_replicas=1)
    wrong = MergePatch({"status": {"readyReplicas": 0, "availableReplicas": 0}})
    await client.patch(ReplicaSet, "web", wrong, subresource="status")
    await until_status(client, "one that serves again", ready_replicas=1, available_replicas=1)
