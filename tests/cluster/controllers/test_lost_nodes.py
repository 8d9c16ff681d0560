"""Nodes that fall silent or go, and their pods; Kubernetes takes a minute for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from cluster.controllers.managers import controlled
from navarch.api import format_time
from navarch.client import MergePatch
from navarch.cluster.controllers.manager import ControllerManagerOptions
from navarch.cluster.controllers.node_health.node_lifecycle import HealthOptions, is_ready, silent, tainted
from navarch.cluster.controllers.node_health.taint_eviction import seconds_tolerated
from navarch.k8s.coordination.v1 import Lease, LeaseSpec
from navarch.k8s.core.v1 import (
    Container,
    Event,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    Taint,
    Toleration,
)
from navarch.testing.cluster import Cluster

pytestmark = pytest.mark.cluster(controllers=False)  # each test has its own

NOW = datetime(2030, 1, 1, tzinfo=UTC)
IMPATIENT = ControllerManagerOptions(
    scheduler=False, health=HealthOptions(look=0.1, silence=1.0, startup=1.0, sweep=0.1, quarantine=0.2)
)
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def node(*conditions: tuple[str, str], **spec: object) -> Node:
    status = NodeStatus(conditions=[NodeCondition(type=type_, status=status) for type_, status in conditions])
    return Node(name="n1", spec=NodeSpec(**spec), status=status)  # type: ignore[arg-type]


def kinds(taints: Sequence[Taint]) -> set[tuple[str, str]]:
    return {(taint.key, taint.effect) for taint in taints}


def test_taints_follow_from_conditions() -> None:
    """Those of others stay, own ones come and go."""
    other = Taint(key="special", effect="NoSchedule")
    assert kinds(tainted(node(("Ready", "True"), taints=[other]), NOW, evicts=True)) == {("special", "NoSchedule")}
    assert kinds(tainted(node(("Ready", "False")), NOW, evicts=True)) == {
        (NOT_READY, "NoSchedule"),
        (NOT_READY, "NoExecute"),
    }
    before = [Taint(key=NOT_READY, effect="NoExecute", time_added=NOW), other]
    assert kinds(tainted(node(("Ready", "Unknown"), taints=before), NOW, evicts=False)) == {
        ("special", "NoSchedule"),
        (UNREACHABLE, "NoSchedule"),
    }
    assert kinds(tainted(node(), NOW, evicts=True)) == {(NOT_READY, "NoSchedule")}
    assert tainted(node(("Ready", "False"), taints=before), NOW, evicts=True)[0].time_added == NOW


def test_conditions_of_a_silent_node_are_unknown() -> None:
    """All that it reports, with the reason; what it never reported as well, and what is unknown stays as it is."""
    found = {each.type: each for each in silent(node(("Ready", "True"), ("Other", "True")), NOW)}
    assert (found["Ready"].status, found["Ready"].reason) == ("Unknown", "NodeStatusUnknown")
    assert (found["DiskPressure"].status, found["DiskPressure"].reason) == ("Unknown", "NodeStatusNeverUpdated")
    assert found["Other"].status == "True"
    again = node()
    again.status.conditions = list(found.values())
    assert {each.type: each for each in silent(again, NOW)} == found


def test_taints_are_tolerated_for_a_while() -> None:
    """The shortest time of all that fit holds, and a taint that nobody tolerates ends it at once."""
    taints = [Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoExecute")]
    forever, shortly = (
        Toleration(key="a", operator="Exists"),
        Toleration(key="b", operator="Exists", toleration_seconds=5),
    )
    assert seconds_tolerated([], []) is None
    assert seconds_tolerated(taints[:1], [forever]) is None
    assert seconds_tolerated(taints, [forever, shortly]) == 5
    assert seconds_tolerated(taints, [forever]) == 0


async def add(cluster: Cluster, name: str) -> None:
    await cluster.create(Node(name=name))
    await report(cluster, name)


async def report(cluster: Cluster, name: str) -> None:
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": format_time(cluster.client.clock.now())}
    await cluster.client.patch(Node, name, MergePatch({"status": {"conditions": [condition]}}), subresource="status")


async def run_pod(cluster: Cluster, name: str, node: str, **spec: object) -> None:
    await cluster.create(Pod(name=name, spec=PodSpec(containers=[Container(name="main", image="none")], **spec)))  # type: ignore[arg-type]
    await cluster.client.bind(name, node)
    ready = {"type": "Ready", "status": "True"}
    await cluster.client.patch(Pod, name, MergePatch({"status": {"conditions": [ready]}}), subresource="status")


async def test_node_that_falls_silent_is_lost(cluster: Cluster) -> None:
    """Its conditions are unknown, it is tainted, its pods are not ready, and leave when they tolerate it no longer."""
    async with controlled(cluster, IMPATIENT):
        await add(cluster, "silent")
        await cluster.create(Lease(name="alive", namespace="kube-node-lease", spec=LeaseSpec()))
        await add(cluster, "alive")
        tolerations = [Toleration(key=UNREACHABLE, operator="Exists", effect="NoExecute", toleration_seconds=1)]
        await run_pod(cluster, "pod", "silent", tolerations=tolerations)

        async def look(name: str = "silent") -> Node:
            """That node, after a sign of life of the other one, which says that it is ready if it was taken for lost."""
            patch = MergePatch({"spec": {"renewTime": f"{cluster.client.clock.now():%Y-%m-%dT%H:%M:%S.%fZ}"}})
            await cluster.client.patch(Lease, "alive", patch, namespace="kube-node-lease")
            if not is_ready(await cluster.get(Node, "alive")):
                await report(cluster, "alive")
            return await cluster.get(Node, name)

        async def look_at_pod() -> Pod:
            await look()
            return await cluster.get(Pod, "pod")

        await cluster.eventually(
            look,
            lambda node: (
                (UNREACHABLE, "NoExecute") in kinds(node.spec.taints or ())
                and {each.status for each in node.status.conditions or ()} == {"Unknown"}
            ),
            what="a lost node",
        )
        await cluster.eventually(lambda: look("alive"), lambda node: not node.spec.taints, what="a node that is not")
        await cluster.eventually(look_at_pod, lambda pod: pod.metadata.deletion_timestamp is not None)
        await cluster.eventually(
            look_at_pod,
            lambda pod: [each.status for each in pod.status.conditions or () if each.type == "Ready"] == ["False"],
        )
        await cluster.eventually(
            lambda: cluster.list(Event, namespace="default"),
            lambda events: {"NodeNotReady", "TaintManagerEviction"} <= {event.reason for event in events},
        )


async def test_pods_of_a_node_that_is_gone_go(cluster: Cluster) -> None:
    """They are deleted for good, since nobody else would."""
    async with controlled(cluster, IMPATIENT):
        await add(cluster, "gone")
        await run_pod(cluster, "pod", "gone")
        await cluster.delete(Node, "gone")
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, what="no pods")


async def test_pods_of_a_node_out_of_service_go_when_they_are_deleted(cluster: Cluster) -> None:
    """Whoever says so knows that nothing runs there any more."""
    async with controlled(cluster, IMPATIENT):
        await cluster.create(
            Node(
                name="off", spec=NodeSpec(taints=[Taint(key="node.kubernetes.io/out-of-service", effect="NoSchedule")])
            )
        )
        await run_pod(cluster, "pod", "off")
        await cluster.delete(Pod, "pod")
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, what="no pods")
