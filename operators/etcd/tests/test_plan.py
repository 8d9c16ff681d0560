"""What is decided, and why, in states that no model comes into by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from etcd_operator.kinds import EtcdSettings
from etcd_operator.manifests import MemberStart, member_pod, template_of
from etcd_operator.observation import (
    KeyspaceHash,
    MemberReport,
    Observation,
    ObservedClaim,
    ObservedMember,
    ObservedPod,
)
from etcd_operator.plan import decide
from etcd_operator.plan.steps import (
    AddMember,
    Compact,
    Defragment,
    DeletePod,
    Disarm,
    GiveUpVersion,
    GrowClaim,
    MoveLeader,
    RemoveMember,
    StartMember,
)
from etcd_operator.report import report_status
from observed import LONG_AGO, a_cluster, down, healthy

T = TypeVar("T")


def test_nothing_is_done_for_a_cluster_that_is_as_asked() -> None:
    """And it is looked at seldom."""
    cluster = a_cluster()
    plan = decide(cluster, healthy(cluster))
    assert (plan.reason, plan.step) == ("Ready", None)
    assert plan.after >= 10


def test_nothing_is_done_while_paused() -> None:
    """Whatever is wrong."""
    cluster = a_cluster(paused=True)
    assert decide(cluster, down(healthy(cluster), "c-1", trouble="disk")).step is None


def test_members_of_two_clusters_stop_everything() -> None:
    """A member that says it belongs elsewhere is named, and nothing is touched."""
    cluster = a_cluster()
    seen = healthy(cluster)
    plan = decide(cluster, replace(seen, reports={**seen.reports, "c-2": MemberReport(member=3, cluster=9, leader=3)}))
    assert (plan.reason, plan.stuck, plan.step) == ("IdentityMismatch", True, None)
    assert "c-2 reports 9" in plan.message


def test_a_corrupt_member_that_is_needed_is_kept() -> None:
    """With another one down, removing it would cost the quorum."""
    cluster = a_cluster()
    seen = down(replace(healthy(cluster), alarms=((2, "CORRUPT"),)), "c-2")
    plan = decide(cluster, seen)
    assert (plan.step, plan.stuck) == (None, True)
    assert decide(cluster, replace(healthy(cluster), alarms=((2, "CORRUPT"),))).step == RemoveMember(seen.members[1])


def test_the_dead_go_first_when_a_degraded_cluster_shrinks() -> None:
    """Five with two that are down become three without touching those that serve."""
    cluster = a_cluster(size=3)
    seen = down(healthy(cluster, 5), "c-1", "c-2")
    plan = decide(cluster, seen)
    assert plan.step == RemoveMember(seen.members[2])


def test_the_leader_goes_last() -> None:
    """The highest number goes, but not if it leads."""
    cluster = a_cluster(size=2)
    seen = healthy(cluster)
    led_by_last = {name: replace(report, leader=3) for name, report in seen.reports.items()}
    assert decide(cluster, seen).step == RemoveMember(seen.members[2])
    assert decide(cluster, replace(seen, reports=led_by_last)).step == RemoveMember(seen.members[1])


def test_a_roll_out_leaves_the_leader_for_last_and_moves_leadership() -> None:
    """Followers one by one; then somebody else leads before the leader is started anew."""
    cluster = a_cluster()
    seen = healthy(cluster)
    cluster.spec.options = EtcdSettings(snapshot_count=5000)
    assert decide(cluster, seen).step == DeletePod("c-2")
    new = template_of(cluster)
    rest = {name: replace(pod, template=new) if name != "c-0" else pod for name, pod in seen.pods.items()}
    assert decide(cluster, replace(seen, pods=rest)).step == MoveLeader(seen.members[0], seen.members[1])


def test_a_roll_out_waits_for_members_that_are_not_ready() -> None:
    """A member that answers etcd but is not ready yet is waited for."""
    cluster = a_cluster()
    seen = healthy(cluster)
    cluster.spec.options = EtcdSettings(snapshot_count=5000)
    pods = {**seen.pods, "c-1": replace(seen.pods["c-1"], ready=False)}
    plan = decide(cluster, replace(seen, pods=pods))
    assert plan.step is None
    assert "c-1" in plan.message


def test_the_next_minor_version_waits_until_members_agree_on_the_last() -> None:
    """They do some seconds after the last of them has it; a newer one would not start with them before."""
    cluster = a_cluster(version="3.5.21")
    seen = healthy(cluster)
    cluster.spec.version = "3.6.8"
    early = decide(cluster, replace(seen, agreed_version="3.4.0"))
    assert (early.reason, early.step) == ("RollingOut", None)
    assert "the cluster version to become 3.5" in early.message
    assert decide(cluster, replace(seen, agreed_version="3.5.0")).step == DeletePod("c-2")


@pytest.mark.parametrize(
    ("running", "asked", "message"),
    [
        ("3.5.1", "3.6.8", "3.5.20"),
        ("3.4.30", "3.6.8", "3.5 first"),
        ("3.5.21", "3.5.1", "go back"),
        ("3.5.21", "4.0.0", "major"),
    ],
)
def test_a_version_that_cannot_be_reached_is_refused_and_said(running: str, asked: str, message: str) -> None:
    """Nothing is touched; the way there is in the words."""
    cluster = a_cluster(version=running)
    seen = healthy(cluster)
    cluster.status.current_version, cluster.spec.version = running, asked
    plan = decide(cluster, seen)
    assert (plan.reason, plan.step, plan.stuck) == ("RolloutRefused", None, True)
    assert message in plan.message


def test_a_member_that_stays_silent_is_replaced() -> None:
    """But not before its time, and not if its image is the cause: another one would have the same."""
    cluster = a_cluster()
    seen = healthy(cluster)
    assert decide(cluster, down(seen, "c-1", unready_since=seen.now)).step is None
    assert decide(cluster, down(seen, "c-1", unready_since=LONG_AGO, trouble="image")).step is None
    assert decide(cluster, down(seen, "c-1", unready_since=LONG_AGO)).step == RemoveMember(seen.members[1])


@pytest.mark.parametrize(
    ("kept", "lost", "seconds", "replaced"),
    [
        (True, "", 200, False),
        (True, "gone", 20, False),
        (True, "gone", 60, True),
        (True, "unreachable", 20, False),
        (True, "unreachable", 60, True),
        (True, "stranded", 60, True),
        (False, "gone", 0, True),
        (False, "unreachable", 20, False),
        (False, "unreachable", 60, True),
    ],
)
def test_a_member_whose_node_is_lost_is_replaced_sooner(kept: bool, lost: str, seconds: int, replaced: bool) -> None:
    """At once if the node has taken its data with it; otherwise it may still come back, but not for long."""
    cluster = a_cluster() if kept else a_cluster(storage=None)
    seen = healthy(cluster)
    plan = decide(cluster, down(seen, "c-1", lost=lost, unready_since=seen.now - timedelta(seconds=seconds)))
    assert (plan.step == RemoveMember(seen.members[1])) == replaced


def test_a_pod_of_which_nobody_says_that_it_is_not_ready_is_lost_all_the_same() -> None:
    """Its node is no node any more: it counts since when the cluster is degraded."""
    cluster = a_cluster()
    seen = down(healthy(cluster), "c-1", lost="gone")
    assert decide(cluster, seen).step is None
    report_status(cluster, seen, decide(cluster, seen))
    later = replace(seen, now=seen.now + timedelta(seconds=60))
    assert decide(cluster, later).step == RemoveMember(seen.members[1])


def test_a_lost_node_that_costs_the_quorum_is_waited_for() -> None:
    """Removing one of two that are down would not help, and cannot be agreed on."""
    cluster = a_cluster()
    seen = down(healthy(cluster), "c-1", "c-2", lost="gone", unready_since=LONG_AGO)
    assert decide(cluster, seen).step is None


def prints(**hashes: int) -> dict[str, KeyspaceHash]:
    """Of members, by their numbers; of one past."""
    return {name.replace("m", "c-"): KeyspaceHash(each, 1) for name, each in hashes.items()}


def test_a_member_that_differs_from_most_is_replaced() -> None:
    """Only if those that stay can decide."""
    cluster = a_cluster()
    seen = replace(healthy(cluster), compared=True, fingerprints=prints(m0=1, m1=2, m2=1))
    plan = decide(cluster, seen)
    assert (plan.reason, plan.step) == ("Diverged", RemoveMember(seen.members[1]))
    report_status(cluster, seen, plan)
    assert cluster.status.is_true("Degraded")
    assert cluster.status.compared_at is None
    needed = decide(cluster, down(seen, "c-2"))
    assert (needed.step, needed.stuck) == (None, True)


@pytest.mark.parametrize("fingerprints", [prints(m0=1, m1=2, m2=3), prints(m0=1, m1=2)])
def test_members_of_whom_no_most_agree_are_left_alone(fingerprints: dict[str, KeyspaceHash]) -> None:
    """The status says who has what; only a person can say who is right."""
    cluster = a_cluster()
    plan = decide(cluster, replace(healthy(cluster), compared=True, fingerprints=fingerprints))
    assert (plan.reason, plan.step, plan.stuck) == ("Diverged", None, True)
    assert "c-0 00000001, c-1 00000002" in plan.message


@pytest.mark.parametrize(
    "fingerprints",
    [prints(m0=1, m1=1, m2=1), {**prints(m0=1, m1=1), "c-2": KeyspaceHash(2, 9)}, prints(m0=1), {}],
)
def test_members_that_are_not_known_to_differ_are_believed(fingerprints: dict[str, KeyspaceHash]) -> None:
    """Those with another past cannot be compared, nor those that did not say; that it was tried is noted."""
    cluster = a_cluster()
    seen = replace(healthy(cluster), compared=True, fingerprints=fingerprints)
    plan = decide(cluster, seen)
    assert plan.reason == "Ready"
    report_status(cluster, seen, plan)
    assert cluster.status.compared_at == seen.now


def test_no_space_is_made_step_by_step() -> None:
    """The past is forgotten, members are defragmented with the leader last, and the alarm is taken back."""
    quota = 1000
    cluster = a_cluster(options=EtcdSettings(quota_backend_bytes=quota))

    def sizes(size: int, in_use: int, **others: int) -> Observation:
        seen = healthy(cluster)
        reports = {
            name: replace(report, size=others.get(name[-2:].replace("-", "m"), size), in_use=in_use, revision=7)
            for name, report in seen.reports.items()
        }
        return replace(seen, reports=reports, alarms=((1, "NOSPACE"),))

    assert decide(cluster, sizes(1000, 1000)).step == Compact(7)
    assert decide(cluster, sizes(1000, 100)).step == Defragment("c-1")
    assert decide(cluster, sizes(1000, 100, m1=100, m2=100)).step == Defragment("c-0")
    assert decide(cluster, sizes(100, 100)).step == Disarm(1, "NOSPACE")


def test_claims_grow() -> None:
    """One after the other."""
    cluster = a_cluster()
    seen = healthy(cluster)
    claims = {**seen.claims, "c-1": replace(seen.claims["c-1"], small=True)}
    assert decide(cluster, replace(seen, claims=claims)).step == GrowClaim("c-1")


def test_members_vote_at_once_where_learners_are_switched_off() -> None:
    """As with CoreOS' operator."""
    cluster = a_cluster(size=4, learners=False)
    assert decide(cluster, healthy(cluster)).step == AddMember("c-3", learner=False)


def test_an_etcd_of_coreos_time_is_formed_and_grows_by_voters() -> None:
    """It has no learners; while one member is still that old, nobody learns."""
    new = a_cluster(version="3.2.13")
    new.status.cluster_id = ""
    assert decide(new, Observation(now=LONG_AGO)).step == StartMember("c-0", MemberStart("seed"), "3.2.13")
    old = a_cluster(size=4, version="3.2.13")
    assert decide(old, healthy(old)).step == AddMember("c-3", learner=False)
    mixed = a_cluster(size=4, version="3.4.30")
    seen = healthy(mixed)
    reports = {**seen.reports, "c-1": replace(seen.reports["c-1"], version="3.3.27")}
    assert decide(mixed, replace(seen, reports=reports)).step == AddMember("c-3", learner=False)
    assert decide(mixed, seen).step == AddMember("c-3", learner=True)


@pytest.mark.parametrize(("version", "moved"), [("3.2.13", False), ("3.3.27", True)])
def test_a_leader_that_cannot_hand_over_is_started_anew_without(version: str, moved: bool) -> None:
    """etcd before 3.3 cannot: the others elect somebody."""
    cluster = a_cluster(version=version)
    seen = healthy(cluster)
    cluster.spec.options = EtcdSettings(snapshot_count=5000)
    new = template_of(cluster)
    rest = {name: replace(pod, template=new) if name != "c-0" else pod for name, pod in seen.pods.items()}
    step = decide(cluster, replace(seen, pods=rest)).step
    assert step == (MoveLeader(seen.members[0], seen.members[1]) if moved else DeletePod("c-0"))


@pytest.mark.parametrize(("version", "port"), [("3.2.13", 2379), ("3.3.27", 2381), ("3.6.8", 2381)])
def test_a_pod_has_the_flags_that_its_etcd_knows(version: str, port: int) -> None:
    """etcd before 3.3 is probed at its client port."""
    made = member_pod(a_cluster(), "c-0", MemberStart("seed"), version=version).spec.containers[0]
    assert any("--listen-metrics-urls" in flag for flag in made.command or []) == (port == 2381)
    for probe in (made.readiness_probe, made.liveness_probe):
        assert probe is not None
        assert probe.http_get is not None
        assert probe.http_get.port == port


def test_the_past_is_forgotten_each_time_where_nobody_says_what_is_used() -> None:
    """etcd before 3.4 does not."""
    cluster = a_cluster(version="3.3.27", options=EtcdSettings(quota_backend_bytes=1000))
    seen = healthy(cluster)
    reports = {name: replace(report, size=1000, revision=7) for name, report in seen.reports.items()}
    assert decide(cluster, replace(seen, reports=reports, alarms=((1, "NOSPACE"),))).step == Defragment("c-1", forget=7)


def test_a_new_member_gets_a_name_that_nothing_else_has() -> None:
    """Also if only a claim of an old one is left, which is ending."""
    cluster = a_cluster(size=2)
    seen = healthy(cluster, 1)
    claims = {**seen.claims, "c-1": replace(seen.claims["c-0"], name="c-1", ending=True)}
    assert decide(cluster, replace(seen, claims=claims)).step == AddMember("c-2", learner=True)


def test_a_learner_that_nobody_asks_for_goes() -> None:
    """Without waiting for it to catch up."""
    cluster = a_cluster(size=1)
    seen = healthy(cluster)
    members = (*seen.members[:2], ObservedMember(id=3, name="c-2", learner=True))
    assert decide(cluster, replace(seen, members=members)).step == RemoveMember(members[2])


def joining(seen: Observation, **fields: Any) -> Observation:
    """With room for c-3, whose pod was told of all members that are there."""
    known = (*seen.members, ObservedMember(id=9, name="c-3", learner=True, started=False, peer_url="http://c-3:2380"))
    told = frozenset(f"{member.name}={member.peer_url}" for member in known)
    new = ObservedPod(name="c-3", first=True, peers=told, version=seen.pods["c-0"].version, **fields)
    claims = {**seen.claims, "c-3": ObservedClaim(name="c-3")}
    return replace(seen, members=known, pods={**seen.pods, "c-3": new}, claims=claims)


def without(of: Mapping[str, T], name: str) -> dict[str, T]:
    return {key: value for key, value in of.items() if key != name}


def test_a_member_that_is_to_go_goes_before_another_one_is_told_of_it() -> None:
    """etcd joins no cluster of which it is told other members than there are."""
    cluster = a_cluster()
    seen = joining(down(healthy(cluster), "c-2"))
    seen = replace(seen, claims=without(seen.claims, "c-2"))
    seen = replace(seen, pods=without(without(seen.pods, "c-2"), "c-3"))
    assert decide(cluster, seen).step == RemoveMember(seen.members[2])
    seen = down(seen, "c-1")
    assert decide(cluster, seen).step == StartMember(
        "c-3", MemberStart("join", tuple((each.name, each.peer_url) for each in seen.members)), "3.5.21"
    ), "c-2 cannot go now"


def test_a_member_that_was_told_of_others_than_there_are_is_replaced_at_once() -> None:
    """It would end again and again; and no version is to blame for it."""
    cluster = a_cluster(version="3.5.22")
    seen = joining(healthy(a_cluster()), trouble="crash", restarts=1)
    cluster.status.current_version = "3.5.21"
    new = replace(seen.pods["c-3"], version="3.5.22")
    assert decide(cluster, replace(seen, pods={**seen.pods, "c-3": new})).step == GiveUpVersion("3.5.22")
    misled = replace(new, peers=new.peers | {"c-4=http://c-4:2380"})
    assert decide(cluster, replace(seen, pods={**seen.pods, "c-3": misled})).step == RemoveMember(seen.members[3])
