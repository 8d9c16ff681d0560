"""DaemonSets: one pod on every node that suits it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import LABELS, SELECTOR, template
from conformance.controllers.watching import active_pods, for_a_while, until, until_event
from navarch.api import controller_of
from navarch.client import Client, MergePatch
from navarch.errors import NotFound
from navarch.k8s.apps.v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from navarch.k8s.core.v1 import Node, NodeSpec, Pod, Taint, Toleration

_numbers = itertools.count(1)


class Nodes:
    """Nodes that are this test's own: those of others have another pool."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.pool = f"pool-{next(_numbers)}"
        self.names: list[str] = []

    async def add(self, *taints: Taint, **labels: str) -> str:
        name = f"{self.pool}-{len(self.names)}"
        self.names.append(name)
        node = Node(name=name, labels={"pool": self.pool, **labels}, spec=NodeSpec(taints=list(taints) or None))
        await self._client.create(node)
        return name


@pytest.fixture
async def nodes(client: Client, kubelet: Kubelet) -> AsyncIterator[Nodes]:
    made = Nodes(client)
    kubelet.places = target
    yield made
    with contextlib.suppress(NotFound):
        await client.delete(DaemonSet, "web", propagation="Background")
    for name in made.names:
        with contextlib.suppress(NotFound):
            await client.delete(Node, name)


def daemon_set(nodes: Nodes, **spec: Any) -> DaemonSet:
    """The template selects the test's own nodes, and tolerates that nobody says they are ready."""
    made: dict[str, Any] = {"selector": SELECTOR, "template": daemon_template(nodes), **spec}
    return DaemonSet(name="web", spec=DaemonSetSpec(**made))


def daemon_template(nodes: Nodes, image: str = "first", **spec: Any) -> Any:
    not_ready = Toleration(key="node.kubernetes.io/not-ready", operator="Exists")
    tolerations = [not_ready, *spec.pop("tolerations", [])]
    return template(image, node_selector={"pool": nodes.pool}, tolerations=tolerations, **spec)


def rolling(surge: int | str = 0, unavailable: int | str = 1) -> DaemonSetUpdateStrategy:
    return DaemonSetUpdateStrategy(
        type="RollingUpdate", rolling_update=RollingUpdateDaemonSet(max_surge=surge, max_unavailable=unavailable)
    )


def target(pod: Pod) -> str:
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    required = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    (field,) = required.node_selector_terms[0].match_fields or []
    assert (field.key, field.operator) == ("metadata.name", "In")
    return (field.values or [])[0]


async def until_on(client: Client, *names: str) -> list[Pod]:
    return await until(
        lambda: active_pods(client), lambda pods: sorted(map(target, pods)) == sorted(names), f"pods for {names}"
    )


async def until_status(client: Client, what: str, **counts: int | None) -> DaemonSet:
    return await until(
        lambda: client.get(DaemonSet, "web"),
        lambda found: all(getattr(found.status, name) == value for name, value in counts.items()),
        f"{what}: {counts}",
    )


async def change_image(client: Client, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await client.patch(DaemonSet, "web", MergePatch({"spec": {"template": {"spec": {"containers": containers}}}}))


async def images(client: Client) -> list[tuple[str, str | None]]:
    return sorted((target(pod), pod.spec.containers[0].image) for pod in await active_pods(client))


async def test_every_node_that_suits_gets_a_pod(client: Client, nodes: Nodes) -> None:
    """Also one that comes later; meant for that node alone, and tolerating what befalls nodes."""
    first, second = await nodes.add(), await nodes.add()
    made = await client.create(daemon_set(nodes))
    pods = await until_on(client, first, second)
    for pod in pods:
        owner = controller_of(pod)
        assert owner is not None
        assert (owner.uid, pod.name[:4], pod.labels["app"]) == (made.metadata.uid, "web-", LABELS["app"])
        tolerated = {(each.key, each.operator, each.effect) for each in pod.spec.tolerations or ()}
        assert ("node.kubernetes.io/unreachable", "Exists", "NoExecute") in tolerated
        assert ("node.kubernetes.io/unschedulable", "Exists", "NoSchedule") in tolerated
        assert ("node.kubernetes.io/disk-pressure", "Exists", "NoSchedule") in tolerated
    await until_status(
        client,
        "both serve",
        desired_number_scheduled=2,
        current_number_scheduled=2,
        number_ready=2,
        number_available=2,
        number_unavailable=None,
        updated_number_scheduled=2,
        number_misscheduled=0,
        observed_generation=1,
    )
    third = await nodes.add()
    await until_on(client, first, second, third)
    await until_event(client, "web", "SuccessfulCreate", f"Created pod: {pods[0].name}")


async def test_node_that_no_longer_suits_loses_its_pod(client: Client, nodes: Nodes) -> None:
    """By its labels, or by a taint that ends what is there; one that only keeps out leaves the pod where it is."""
    labelled, tainted, closed = await nodes.add(), await nodes.add(), await nodes.add()
    await client.create(daemon_set(nodes))
    await until_on(client, labelled, tainted, closed)
    await client.patch(Node, labelled, MergePatch({"metadata": {"labels": {"pool": "other"}}}))
    await until_on(client, tainted, closed)
    taints = {closed: "NoSchedule", tainted: "NoExecute"}

    async def left() -> list[str]:
        for name, effect in taints.items():
            await taint(client, name, Taint(key="example.org/full", effect=effect))
        return sorted(map(target, await active_pods(client)))

    await until(left, lambda found: found == [closed], "the pod of the closed node alone")
    await until_status(client, "one pod where none should be", desired_number_scheduled=0, number_misscheduled=1)


async def taint(client: Client, name: str, wanted: Taint) -> None:
    """Whoever looks after the health of nodes writes all of their taints, and may write over one that comes meanwhile."""

    def add(node: Node) -> None:
        others = [each for each in node.spec.taints or () if each.key != wanted.key]
        node.spec.taints = [*others, wanted]

    await client.update(Node, name, add)


async def test_tainted_node_gets_a_pod_if_it_is_tolerated(client: Client, nodes: Nodes) -> None:
    """Each template says what it tolerates."""
    await nodes.add(Taint(key="example.org/a", effect="NoSchedule"))
    second = await nodes.add(Taint(key="example.org/b", effect="NoSchedule"))
    tolerated = [Toleration(key="example.org/b", operator="Exists")]
    await client.create(daemon_set(nodes, template=daemon_template(nodes, tolerations=tolerated)))
    await until_on(client, second)
    await until_status(client, "one node", desired_number_scheduled=1)


async def test_pod_that_is_lost_or_failed_is_replaced(client: Client, nodes: Nodes, kubelet: Kubelet) -> None:
    """The first time at once."""
    name = await nodes.add()
    await client.create(daemon_set(nodes))
    (first,) = await until_on(client, name)
    await client.delete(Pod, first.name)
    (second,) = await until(
        lambda: active_pods(client), lambda pods: len(pods) == 1 and pods[0].name != first.name, "another pod"
    )
    await until_status(client, "it serves", number_ready=1)
    await kubelet.finish(second, code=1)
    await until(lambda: active_pods(client), lambda pods: len(pods) == 1 and pods[0].name != second.name, "a third pod")
    await until_event(client, "web", "FailedDaemonPod", "Found failed daemon pod")


async def test_pods_are_renewed_one_after_the_other(client: Client, nodes: Nodes, kubelet: Kubelet) -> None:
    """The next goes when the one before it serves; each version is kept."""
    names = [await nodes.add() for _ in range(3)]
    await client.create(daemon_set(nodes, update_strategy=rolling()))
    await until_status(client, "all serve", number_available=3, updated_number_scheduled=3)
    kubelet.holds = lambda pod: pod.spec.containers[0].image == "second"
    await change_image(client, "second")
    await until(
        lambda: images(client),
        lambda found: [image for _, image in found].count("second") == 1 and len(found) == 3,
        "one new pod",
    )
    await until_status(client, "one is new and does not serve", updated_number_scheduled=1, number_available=2)
    await for_a_while(
        lambda: images(client), lambda found: [image for _, image in found].count("first") == 2, "two old", seconds=0.3
    )
    kubelet.holds = lambda pod: False
    await until(lambda: images(client), lambda found: found == [(name, "second") for name in names], "all to be new")
    await until_status(client, "all new", updated_number_scheduled=3, number_available=3, observed_generation=2)
    revisions = [each.revision async for each in client.list(ControllerRevision)]
    assert sorted(revisions) == [1, 2]


async def test_new_pod_comes_before_the_old_one_goes_where_surge_is_allowed(
    client: Client, nodes: Nodes, kubelet: Kubelet
) -> None:
    """Until it serves, the node has both."""
    name = await nodes.add()
    await client.create(daemon_set(nodes, update_strategy=rolling(surge=1, unavailable=0)))
    await until_status(client, "it serves", number_available=1, updated_number_scheduled=1)
    kubelet.holds = lambda pod: pod.spec.containers[0].image == "second"
    await change_image(client, "second")
    await until(lambda: images(client), lambda found: found == [(name, "first"), (name, "second")], "both")
    await for_a_while(lambda: images(client), lambda found: len(found) == 2, "both to stay", seconds=0.3)
    kubelet.holds = lambda pod: False
    await until(lambda: images(client), lambda found: found == [(name, "second")], "the new one alone")


async def test_update_on_deletion_waits_for_the_user(client: Client, nodes: Nodes, kubelet: Kubelet) -> None:
    """Whoever deletes a pod gets the new version."""
    name = await nodes.add()
    await client.create(daemon_set(nodes, update_strategy=DaemonSetUpdateStrategy(type="OnDelete")))
    await until_status(client, "it serves", number_available=1)
    await change_image(client, "second")
    await until_status(client, "it is old", updated_number_scheduled=None, observed_generation=2)
    (old,) = await active_pods(client)
    await client.delete(Pod, old.name)
    await until(lambda: images(client), lambda found: found == [(name, "second")], "a new pod")
