"""What is seen of pods, and when members are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY

from etcd_operator.etcd import Etcd
from etcd_operator.kinds import EtcdCluster, Healing
from etcd_operator.observation import AuthState, KeyspaceHash, MemberReport, NodeLoss, Observation, ObservedMember
from etcd_operator.observe import NodeHealth, observe, observe_pod
from etcd_operator.report import MemberCounts
from navarch import Context
from navarch.k8s.core.v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Node,
    NodeSpec,
    Pod,
    PodCondition,
    PodSpec,
    Taint,
)
from observed import NOW, a_cluster, healthy


class Said:
    """An etcd that says what is given."""

    def __init__(self, seen: Observation, *answers: Mapping[str, KeyspaceHash]) -> None:
        self._seen, self._answers = seen, list(answers)
        self.asked: list[int] = []

    async def reports(self) -> Mapping[str, MemberReport]:
        return self._seen.reports

    async def members(self, *, agreed: bool) -> tuple[ObservedMember, ...]:
        return self._seen.members

    async def auth(self) -> AuthState:
        return ""

    async def alarms(self) -> tuple[()]:
        return ()

    async def agreed_version(self) -> str:
        return "3.5.0"

    async def fingerprints(self, names: Sequence[str], revision: int) -> Mapping[str, KeyspaceHash]:
        self.asked.append(revision)
        return self._answers.pop(0)


async def nowhere(name: str) -> NodeLoss:
    return ""


async def looked(cluster: EtcdCluster, etcd: Said) -> Observation:
    return await observe(cluster, [], [], cast("Etcd", etcd), node_lost=nowhere, now=NOW)


def alike(*names: str) -> dict[str, KeyspaceHash]:
    return {name: KeyspaceHash(7, 1) for name in names or ("c-0", "c-1", "c-2")}


async def test_members_are_compared_now_and_then() -> None:
    """A comparison runs if none ran before or the interval has passed; not if disabled or paused."""
    cluster = a_cluster()
    asked = Said(healthy(cluster), alike(), alike())
    assert (await looked(cluster, asked)).compared
    cluster.status.compared_at = NOW - timedelta(seconds=600)
    assert (await looked(cluster, asked)).compared
    for healing, ago, paused in ((600, 599, False), (0, 9999, False), (600, 9999, True)):
        cluster.spec.healing, cluster.spec.paused = Healing(compare_every_seconds=healing), paused
        cluster.status.compared_at = NOW - timedelta(seconds=ago)
        assert not (await looked(cluster, asked)).compared
    assert len(asked.asked) == 2


async def test_a_difference_is_believed_the_second_time() -> None:
    """A compaction may run between two reads, so a difference must show twice."""
    cluster, odd = a_cluster(), {**alike("c-0", "c-1"), "c-2": KeyspaceHash(8, 1)}
    asked = Said(healthy(cluster), odd, alike())
    assert (await looked(cluster, asked)).fingerprints == alike()
    assert (await looked(cluster, Said(healthy(cluster), odd, odd))).fingerprints == odd


@pytest.mark.parametrize("versions", [("3.5.21", "3.5.21", "3.6.8"), ("3.2.13", "3.2.13", "3.2.13")])
async def test_versions_that_count_differently_are_not_compared(versions: Sequence[str]) -> None:
    """Members are not compared during an upgrade, or before 3.3, which has no such hash."""
    cluster = a_cluster()
    seen = healthy(cluster)
    told = {
        name: MemberReport(member=number, cluster=1, version=version, leader=1)
        for number, (name, version) in enumerate(zip(seen.reports, versions, strict=True), 1)
    }
    assert not (await looked(cluster, Said(Observation(now=NOW, reports=told, members=seen.members)))).compared


def ended(line: str) -> Pod:
    pod = Pod(name="c-0", spec=PodSpec(containers=[]))
    end = ContainerState(terminated=ContainerStateTerminated(exit_code=1, message=line))
    pod.status.container_statuses = [
        ContainerStatus(name="etcd", image="", image_id="", ready=False, restart_count=1, state=end)
    ]
    return pod


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ('{"level":"fatal","msg":"discovery failed","error":"cannot fetch cluster info from peer urls"}', "disk"),
        ("2026-01-01 10:00:00.123456 C | etcdmain: cannot fetch cluster info from peer urls: could not", "disk"),
        ("2026-01-01 10:00:00.123456 C | etcdmain: listen tcp: address already in use", "crash"),
        ("2026-01-01 10:00:00.123456 I | etcdserver: cannot fetch cluster info from peer urls", "crash"),
    ],
)
def test_last_words_are_understood_in_old_and_new_logs(line: str, trouble: str) -> None:
    """3.4 and before write lines, later ones JSON."""
    assert observe_pod(ended(line)).trouble == trouble


@pytest.mark.parametrize(("minutes", "failures"), [(0, 7), (30, 0)])
def test_who_ran_well_before_has_not_failed_to_start(minutes: int, failures: int) -> None:
    """A member that ends once a month is not replaced for it in the end."""
    pod = ended("it ended")
    (status,) = pod.status.container_statuses or []
    assert status.state is not None
    assert status.state.terminated is not None
    status.restart_count = 7
    status.state.terminated.started_at, status.state.terminated.finished_at = NOW, NOW + timedelta(minutes=minutes)
    assert observe_pod(pod).restarts == failures


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (
            "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity. preemption: 0/2",
            "stranded",
        ),
        (
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match PersistentVolume's node aff",
            "",
        ),
        ("0/2 nodes are available: 2 Insufficient memory.", ""),
    ],
)
def test_a_volume_that_no_node_has_is_known_from_what_the_scheduler_says(said: str, lost: str) -> None:
    """A node that is only cordoned still has it."""
    pod = Pod(name="c-0", spec=PodSpec(containers=[]))
    pod.status.conditions = [PodCondition(type="PodScheduled", status="False", message=said)]
    assert observe_pod(pod).lost == lost


class Asking:
    """A context that knows nodes."""

    def __init__(self, **nodes: Node) -> None:
        self.nodes, self.at, self.asked = nodes, NOW, 0

    def now(self) -> Any:
        return self.at

    async def get(self, _: type[Node], name: str) -> Node | None:
        self.asked += 1
        return self.nodes.get(name)


async def test_a_node_is_asked_for_only_every_few_seconds() -> None:
    """However many members are silent, and however often they are looked at."""
    asking, nodes = Asking(), NodeHealth()
    ctx = cast("Context", asking)
    assert [await nodes.lost(ctx, "a") for _ in range(3)] == ["gone"] * 3
    assert asking.asked == 1
    asking.nodes["a"] = Node(name="a", spec=NodeSpec())
    asking.at += timedelta(seconds=5)
    assert await nodes.lost(ctx, "a") == ""
    asking.nodes["a"].spec.taints = [Taint(key="node.kubernetes.io/unreachable", effect="NoExecute")]
    asking.at += timedelta(seconds=5)
    assert await nodes.lost(ctx, "a") == "unreachable"


def test_members_are_counted_while_their_cluster_is_looked_at() -> None:
    """And not any more when it is gone."""

    def counted() -> float | None:
        labels = {"namespace": "counted", "cluster": "c", "state": "ready"}
        return REGISTRY.get_sample_value("etcd_operator_members", labels)

    counts = MemberCounts()
    counts.record("counted", "c", {"ready": 3}, NOW)
    counts.remove_deleted(NOW + timedelta(minutes=4))
    assert counted() == 3
    counts.remove_deleted(NOW + timedelta(minutes=6))
    assert counted() is None
