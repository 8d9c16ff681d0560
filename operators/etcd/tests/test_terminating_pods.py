"""Pods and claims that are about to go: who has data still, and who must not be counted on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etcd_operator.backup_keeper import BackupState
from etcd_operator.kinds import EtcdSettings, Healing
from etcd_operator.observation import ObservedClaim, ObservedPod
from etcd_operator.plan import decide
from etcd_operator.plan.steps import (
    AddMember,
    Promote,
    RemoveMember,
)
from etcd_operator.report import report_status
from observed import NOW, a_cluster, down, healthy

BACKUP = BackupState(newest="some/etcd.db of yesterday")


def test_a_member_whose_pod_is_ending_is_not_counted_on() -> None:
    """It still answers while its node is drained: until it is back, nobody else is stopped, or removed by choice."""
    cluster = a_cluster()
    seen = healthy(cluster)
    seen = replace(seen, pods={**seen.pods, "c-1": replace(seen.pods["c-1"], ending=True)})
    cluster.spec.options = EtcdSettings(snapshot_count=5000)
    assert decide(cluster, seen).step is None
    cluster.spec.size = 2
    assert decide(cluster, seen).step == RemoveMember(seen.members[1])


def test_a_learner_whose_pod_is_ending_does_not_begin_to_vote() -> None:
    """There would be a voter more to wait for, and perhaps for ever."""
    cluster = a_cluster()
    seen = healthy(cluster)
    learner = replace(seen.members[2], learner=True)
    seen = replace(seen, members=(*seen.members[:2], learner))
    assert decide(cluster, seen).step == Promote(learner)
    ending = {**seen.pods, "c-2": replace(seen.pods["c-2"], ending=True)}
    assert decide(cluster, replace(seen, pods=ending)).step is None


@pytest.mark.parametrize("size", [1, 2])
def test_a_member_whose_data_goes_with_its_pod_goes_while_that_can_be_agreed_on(size: int) -> None:
    """Of two without claims, the other one could not decide anything any more, for ever."""
    cluster = a_cluster(size=size, storage=None)
    seen = healthy(cluster, 2)
    seen = replace(seen, pods={**seen.pods, "c-1": replace(seen.pods["c-1"], ending=True)})
    assert decide(cluster, seen).step == RemoveMember(seen.members[1])


def test_a_pod_whose_claim_is_ending_is_not_stopped() -> None:
    """Kubernetes keeps the volume while the pod is there, and no longer: another member joins before this one goes."""
    cluster = a_cluster(size=1)
    seen = replace(healthy(cluster, 1), claims={"c-0": ObservedClaim(name="c-0", ending=True)})
    assert decide(cluster, seen).step == AddMember("c-1", learner=True)
    cluster.spec.options = EtcdSettings(snapshot_count=5000)
    assert decide(cluster, seen).step == AddMember("c-1", learner=True)
    cluster.spec.size = 0
    asleep = decide(cluster, seen)
    assert (asleep.step, asleep.stuck) == (None, True)
    report_status(cluster, seen, asleep)
    assert cluster.status.is_true("Degraded")
    strays = {**seen.pods, **{name: ObservedPod(name=name, running=True) for name in ("c-1", "c-2")}}
    assert decide(cluster, replace(seen, pods=strays)).stuck


def test_a_member_whose_claim_went_before_its_pod_had_a_node_is_replaced_at_once() -> None:
    """As when it is started again before anybody has heard that its claim is ending. A pod that runs has its volume still."""
    cluster = a_cluster()
    seen = healthy(cluster)
    without = {name: claim for name, claim in seen.claims.items() if name != "c-1"}
    waiting = down(seen, "c-1", trouble="unschedulable", unready_since=NOW)
    assert decide(cluster, waiting).step is None
    assert decide(cluster, replace(waiting, claims=without)).step == RemoveMember(seen.members[1])
    assert decide(cluster, replace(down(seen, "c-1", unready_since=NOW), claims=without)).step is None
    cluster = a_cluster(storage=None)
    waiting = down(healthy(cluster), "c-1", trouble="unschedulable", unready_since=NOW)
    assert decide(cluster, replace(waiting, claims={})).step is None


def test_a_member_whose_claim_is_ending_goes_when_another_one_votes() -> None:
    """The one that would lose its data is the one that is replaced."""
    cluster = a_cluster()
    seen = healthy(cluster, 4)
    seen = replace(seen, claims={**seen.claims, "c-1": ObservedClaim(name="c-1", ending=True)})
    assert decide(cluster, seen).step == RemoveMember(seen.members[1])


def test_a_running_pod_has_data_although_its_claim_is_ending() -> None:
    """Somebody deletes all claims, and members lose sight of each other for a moment: that is no lost quorum."""
    cluster = a_cluster(healing=Healing(restore_from_backup=True))
    seen = healthy(cluster)
    silent = {name: replace(report, leader=0) for name, report in seen.reports.items()}
    claims = {name: ObservedClaim(name=name, ending=True) for name in seen.claims}
    plan = decide(cluster, replace(seen, agreed=False, reports=silent, claims=claims, kept=BACKUP))
    assert plan.step is None
    assert not plan.stuck
