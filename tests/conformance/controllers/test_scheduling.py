"""The scheduler: which pod goes to which node, and what is said if there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from conformance.controllers.nodes import Nodes, some_nodes
from conformance.controllers.watching import for_a_while, until, until_event, until_gone
from navarch.api import ObjectMeta, Quantity
from navarch.client import Client, JsonPatch, MergePatch
from navarch.errors import Forbidden
from navarch.k8s.core.v1 import (
    Affinity,
    Container,
    ContainerPort,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSchedulingGate,
    PodSpec,
    PreferredSchedulingTerm,
    ResourceRequirements,
    ServiceAccount,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from navarch.k8s.meta.v1 import LabelSelector
from navarch.k8s.scheduling.v1 import PriorityClass

pytestmark = pytest.mark.usefixtures("scheduler")

WEB = {"app": "web"}
SELECTOR = LabelSelector(match_labels=WEB)
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"


@pytest.fixture
async def nodes(client: Client, scheduler: None) -> AsyncIterator[Nodes]:
    """Nodes of this test; pods of its namespace can be made."""
    await until(lambda: client.get(ServiceAccount, "default"), lambda _: True, "an account for pods")
    async with some_nodes(client) as nodes:
        yield nodes


def pod(name: str, *, asks: Mapping[str, str] | None = None, port: int | None = None, **spec: Any) -> Pod:
    requests = {resource: Quantity(amount) for resource, amount in (asks or {}).items()}
    ports = [ContainerPort(container_port=port, host_port=port)] if port else None
    resources = ResourceRequirements(requests=requests)
    container = Container(name="main", image="none", resources=resources, ports=ports)
    return Pod(
        metadata=ObjectMeta(name=name, labels=WEB),
        spec=PodSpec(containers=[container], **{"termination_grace_period_seconds": 0, **spec}),
    )


async def placed(client: Client, new: Pod) -> str:
    """The node that the pod is given."""
    await client.create(new)
    return await place_of(client, new.name)


async def place_of(client: Client, name: str) -> str:
    found = await until(lambda: client.get(Pod, name), lambda found: found.spec.node_name, f"{name} to have a node")
    return found.spec.node_name or ""


def refusal(found: Pod) -> str:
    """Why the pod has no node."""
    conditions = found.status.conditions or ()
    messages = [each.message or "" for each in conditions if each.type == "PodScheduled" and each.status == "False"]
    return next(iter(messages), "")


async def until_refused(client: Client, name: str, why: str) -> None:
    """Returns when the pod is told why it waits, in words that begin so.

    The real scheduler hears of nodes and of pods apart, and so may first judge by what was there a moment ago.
    """
    await until(lambda: client.get(Pod, name), lambda found: refusal(found).startswith(why), f"{name} to wait: {why}")


async def close(client: Client, node: str) -> None:
    """The node takes no more pods, and the scheduler knows: another one that only suits this node has to wait."""
    await client.patch(Node, node, MergePatch({"spec": {"unschedulable": True}}))

    async def tried() -> str:
        new = pod("tried", node_selector={HOSTNAME: node})
        new.labels = {}
        await client.create(new)
        found = await until(lambda: client.get(Pod, "tried"), lambda it: it.spec.node_name or refusal(it), "a verdict")
        await client.delete(Pod, "tried", grace_seconds=0)
        return refusal(found)

    await until(tried, lambda said: said, f"{node} to be closed")


def near(key: str = HOSTNAME) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=SELECTOR)


async def test_pod_goes_to_the_node_that_has_room(client: Client, nodes: Nodes) -> None:
    """It is bound, says so in its conditions, and an event says where."""
    await nodes.add(room={"cpu": "1"})
    large = await nodes.add()
    assert await placed(client, pod("big", asks={"cpu": "2"})) == large
    found = await client.get(Pod, "big")
    assert [each.status for each in found.status.conditions or () if each.type == "PodScheduled"] == ["True"]
    message = f"Successfully assigned {client.options.namespace}/big to {large}"
    await until_event(client, "big", "Scheduled", message)


async def test_pod_without_a_node_is_told_why(client: Client, nodes: Nodes) -> None:
    """The condition and the event count the reasons, those of nodes that cannot be helped apart."""
    await nodes.add(room={"cpu": "1"})
    await nodes.add(unschedulable=True)
    await nodes.add(taints=[Taint(key="special", value="yes", effect="NoSchedule")])
    await nodes.add(labels={"disk": "slow"}, room={"cpu": "1", "memory": "1Gi"})
    await client.create(pod("big", asks={"cpu": "2", "memory": "2Gi"}))
    message = (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, "
        f"preemption: 0/4 nodes are available: 4 {NO_HELP}."
    )
    await until_refused(client, "big", message)
    await until_event(client, "big", "FailedScheduling", message)


async def test_pod_waits_while_there_are_no_nodes(client: Client, nodes: Nodes) -> None:
    """It is told so, and goes to the first one that comes."""
    await client.create(pod("early"))
    await until_refused(client, "early", "no nodes available to schedule pods")
    name = await nodes.add()
    assert await place_of(client, "early") == name


async def test_pod_that_waited_goes_where_room_becomes(client: Client, nodes: Nodes) -> None:
    """When another pod goes, and when a node grows."""
    name = await nodes.add(room={"cpu": "2"})
    await placed(client, pod("first", asks={"cpu": "2"}))
    await client.create(pod("second", asks={"cpu": "2"}))
    await until_refused(client, "second", "0/1 nodes are available: 1 Insufficient cpu.")
    await client.delete(Pod, "first", grace_seconds=0)
    assert await place_of(client, "second") == name
    await client.create(pod("third", asks={"cpu": "2"}))
    await until_refused(client, "third", "0/1 nodes are available: 1 Insufficient cpu.")
    await nodes.report(name, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"})
    assert await place_of(client, "third") == name


async def test_selector_and_affinity_choose_nodes(client: Client, nodes: Nodes) -> None:
    """Required labels hold for sure, preferred ones where they can."""
    slow = await nodes.add(labels={"disk": "slow"})
    fast = await nodes.add(labels={"disk": "fast", "speed": "12"})
    assert await placed(client, pod("selects", node_selector={"disk": "slow"})) == slow
    faster = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key="speed", operator="Gt", values=["10"])])
    required = NodeAffinity(
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=[faster])
    )
    assert await placed(client, pod("requires", affinity=Affinity(node_affinity=required))) == fast
    wish = PreferredSchedulingTerm(preference=faster, weight=100)
    preferred = NodeAffinity(preferred_during_scheduling_ignored_during_execution=[wish])
    assert await placed(client, pod("prefers", affinity=Affinity(node_affinity=preferred))) == fast
    await client.create(pod("nowhere", node_selector={"disk": "none"}))
    expected = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. "
    tail = f"no new claims to deallocate, preemption: 0/2 nodes are available: 2 {NO_HELP}."
    await until_refused(client, "nowhere", f"{expected}{tail}")


async def test_taints_keep_out_whoever_does_not_tolerate_them(client: Client, nodes: Nodes) -> None:
    """Hard taints always, soft ones where there is another node."""
    hard = await nodes.add(taints=[Taint(key="special", value="yes", effect="NoSchedule")])
    soft = await nodes.add(taints=[Taint(key="busy", effect="PreferNoSchedule")])
    free = await nodes.add()
    assert await placed(client, pod("plain")) == free
    await close(client, free)
    assert await placed(client, pod("second")) == soft
    tolerant = [Toleration(key="special", operator="Exists")]
    await close(client, soft)
    assert await placed(client, pod("tolerant", tolerations=tolerant)) == hard


async def test_pods_are_spread_evenly(client: Client, nodes: Nodes) -> None:
    """No domain has more than one pod more than another; one that would is refused."""
    for zone in ("a", "a", "b"):
        await nodes.add(labels={ZONE: zone})
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=SELECTOR
    )
    for number in range(4):
        await placed(client, pod(f"web-{number}", topology_spread_constraints=[constraint]))
    zones = {name: (await client.get(Node, name)).labels[ZONE] for name in nodes.names}
    found = Counter([zones[each.spec.node_name or ""] for each in await client.list(Pod)])
    assert found == {"a": 2, "b": 2}
    await close(client, nodes.names[2])
    await placed(client, pod("web-4", topology_spread_constraints=[constraint]))
    await client.create(pod("web-5", topology_spread_constraints=[constraint]))
    why = (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints."
    )
    tail = f"no new claims to deallocate, preemption: 0/3 nodes are available: 1 {NO_HELP}, 2 {NO_VICTIMS}."
    await until_refused(client, "web-5", f"{why} {tail}")


async def test_pods_stay_away_from_each_other(client: Client, nodes: Nodes) -> None:
    """One on each node; what is there keeps others away, too."""
    for _ in range(2):
        await nodes.add()
    away = Affinity(pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=[near()]))
    found = {await placed(client, pod(f"web-{number}", affinity=away)) for number in range(2)}
    assert found == set(nodes.names)
    await client.create(pod("web-2", affinity=away))
    tail = f"no new claims to deallocate, preemption: 0/2 nodes are available: 2 {NO_VICTIMS}."
    why = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
    await until_refused(client, "web-2", f"{why} {tail}")
    await client.create(pod("plain"))
    why = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    await until_refused(client, "plain", f"{why} {tail}")


async def test_pods_stay_together(client: Client, nodes: Nodes) -> None:
    """The first may be anywhere, the others go where it is."""
    for zone in ("a", "b"):
        await nodes.add(labels={ZONE: zone})
    together = Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=[near(ZONE)]))
    found = {await placed(client, pod(f"web-{number}", affinity=together)) for number in range(3)}
    assert len(found) == 1


async def test_ports_of_a_node_are_used_once(client: Client, nodes: Nodes) -> None:
    """Two pods with one host port are on two nodes, a third on none."""
    for _ in range(2):
        await nodes.add()
    assert {await placed(client, pod(f"web-{number}", port=8080)) for number in range(2)} == set(nodes.names)
    await client.create(pod("web-2", port=8080))
    why = "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    await until_refused(client, "web-2", why)


async def test_pods_are_spread_by_what_they_ask_for(client: Client, nodes: Nodes) -> None:
    """Each goes where most is left."""
    for _ in range(3):
        await nodes.add()
    found = [await placed(client, pod(f"web-{number}", asks={"cpu": "1", "memory": "1Gi"})) for number in range(6)]
    assert Counter(found) == dict.fromkeys(nodes.names, 2)


async def test_gates_hold_pods_back(client: Client, nodes: Nodes) -> None:
    """Until the last one is taken away."""
    name = await nodes.add()
    await client.create(pod("gated", scheduling_gates=[PodSchedulingGate(name="example.com/wait")]))
    await for_a_while(
        lambda: client.get(Pod, "gated"), lambda found: not found.spec.node_name, "no node behind a gate", seconds=0.5
    )
    await client.patch(Pod, "gated", JsonPatch([{"op": "remove", "path": "/spec/schedulingGates/0"}]))
    assert await place_of(client, "gated") == name


async def test_pods_of_another_scheduler_are_left_alone(client: Client, nodes: Nodes) -> None:
    """They wait for theirs."""
    await nodes.add()
    await client.create(pod("other", scheduler_name="other-scheduler"))
    await placed(client, pod("own"))
    assert not (await client.get(Pod, "other")).spec.node_name


async def until_known(client: Client, priority_class: str) -> None:
    """Returns when pods may have the class, of which the real server hears a moment after it was made."""

    async def refused() -> str:
        try:
            await client.using(dry_run=True).create(pod("dry", priority_class_name=priority_class))
        except Forbidden as error:
            return str(error)
        return ""

    await until(refused, lambda said: not said, f"pods to be let in with {priority_class}")


async def test_important_pod_takes_the_place_of_another(client: Client, nodes: Nodes) -> None:
    """The least important that is enough goes, and says why it went."""
    name = await nodes.add(room={"cpu": "2"})
    important = PriorityClass(metadata=ObjectMeta(generate_name="important-"), value=1000)
    important = await client.create(important)
    await until_known(client, important.name)
    await placed(client, pod("plain", asks={"cpu": "1"}))
    await placed(client, pod("other", asks={"cpu": "1"}, priority_class_name=important.name))
    await client.create(pod("vip", asks={"cpu": "1"}, priority_class_name=important.name))
    await until_gone(client, Pod, "plain")
    assert await place_of(client, "vip") == name
    assert (await client.get(Pod, "other")).metadata.deletion_timestamp is None
    await until_event(client, "plain", "Preempted", "Preempted by pod ")
    await client.delete(PriorityClass, important.name)
