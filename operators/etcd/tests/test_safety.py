"""What must not be decided, whatever two faults come together: nobody's data is given away on a doubtful word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from etcd_operator.backup_keeper import BackupState
from etcd_operator.kinds import EtcdSettings, Healing
from etcd_operator.manifests import template_of
from etcd_operator.observation import (
    Alarm,
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
    ChooseSurvivor,
    Compact,
    Defragment,
    DeletePod,
    Disarm,
    Remember,
    RemoveMember,
    Restore,
    StartMember,
)
from etcd_operator.report import report_status
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference
from etcd_operator.restore.seed import seed
from observed import LONG_AGO, NOW, a_cluster, down, healthy

BACKUP = BackupState(newest="some/etcd.db of yesterday")


def accused(*numbers: int) -> tuple[tuple[int, Alarm], ...]:
    return tuple((number, "CORRUPT") for number in numbers)


def prints(*hashes: int) -> dict[str, KeyspaceHash]:
    return {f"c-{number}": KeyspaceHash(each, 1) for number, each in enumerate(hashes)}


# Alarms


def test_members_that_a_corrupt_leader_accuses_are_not_removed() -> None:
    """etcd compares with what the leader has: if that is wrong, all others are accused."""
    cluster = a_cluster()
    seen = replace(healthy(cluster), alarms=accused(2, 3))
    plan = decide(cluster, seen)
    assert (plan.reason, plan.step, plan.stuck) == ("Alarmed", None, True)
    compared = replace(seen, compared=True, fingerprints=prints(7, 8, 8))
    assert decide(cluster, compared).step == RemoveMember(seen.members[0])


def test_an_alarm_that_names_nobody_is_not_taken_back() -> None:
    """etcd says member 0 where it cannot tell who is wrong; only when all hold the same again there is nothing wrong."""
    cluster = a_cluster()
    seen = replace(healthy(cluster), alarms=accused(0))
    assert (decide(cluster, seen).step, decide(cluster, seen).stuck) == (None, True)
    differ = replace(seen, compared=True, fingerprints=prints(8, 7, 8))
    assert decide(cluster, differ).step == RemoveMember(seen.members[1])
    alike = replace(seen, compared=True, fingerprints=prints(8, 8, 8))
    assert decide(cluster, alike).step == Disarm(0, "CORRUPT")
    some = replace(seen, compared=True, fingerprints={"c-0": KeyspaceHash(8, 1)})
    assert decide(cluster, some).step is None


def test_of_two_members_none_is_removed_on_the_word_of_the_other() -> None:
    """With one vote against one, no member is removed."""
    cluster = a_cluster(size=2)
    plan = decide(cluster, replace(healthy(cluster, 2), alarms=accused(2)))
    assert (plan.step, plan.stuck) == (None, True)


def test_space_that_cannot_be_won_is_not_asked_for_again_and_again() -> None:
    """A member that is not much larger than what it holds is not defragmented in a loop, which would stop its writes."""
    cluster = a_cluster(options=EtcdSettings(quota_backend_bytes=1000))
    assert decide(cluster, _sized(healthy(cluster), 920, 890)).step == Disarm(1, "NOSPACE")
    assert decide(cluster, _sized(healthy(cluster), 960, 950)).step == Compact(7)
    old = decide(cluster, _sized(healthy(cluster), 960, 0))
    assert old.step == Defragment("c-1", forget=7)
    assert old.after >= 10


def test_a_larger_quota_is_rolled_out_before_the_alarm_is_taken_back() -> None:
    """Members that still have the old one would raise it again; and none of them is ready while it is raised."""
    cluster = a_cluster(options=EtcdSettings(quota_backend_bytes=1000))
    seen = _sized(healthy(cluster), 1000, 1000)
    seen = replace(seen, pods={name: replace(pod, ready=False) for name, pod in seen.pods.items()})
    cluster.spec.options = EtcdSettings(quota_backend_bytes=4000)
    assert decide(cluster, seen).step == DeletePod("c-2")
    new = {name: replace(pod, template=template_of(cluster)) for name, pod in seen.pods.items()}
    assert decide(cluster, replace(seen, pods=new)).step == Disarm(1, "NOSPACE")


def _sized(seen: Observation, size: int, in_use: int) -> Observation:
    reports = {name: replace(report, size=size, in_use=in_use, revision=7) for name, report in seen.reports.items()}
    return replace(seen, reports=reports, alarms=((1, "NOSPACE"),))


# No quorum


def lost(seen: Observation, **fields: object) -> Observation:
    """Nobody answers, and no pod is there."""
    return replace(seen, pods={}, reports={}, members=(), agreed=False, **fields)  # type: ignore[arg-type]


def test_a_learner_that_has_not_begun_does_not_make_a_quorum_lost() -> None:
    """Who voted is not known while nobody answers: whoever has data is started, and waited for."""
    cluster = a_cluster(size=1, healing=Healing(restore_from_backup=True))
    cluster.status.members.ready, cluster.status.members.unready = ["c-0"], ["c-1"]
    cluster.status.members.joining = ["c-1"]
    seen = lost(healthy(cluster, 1), kept=BACKUP)
    first = decide(cluster, seen).step
    assert isinstance(first, StartMember)
    assert first.name == "c-0"
    started = replace(seen, pods={"c-0": ObservedPod(name="c-0", running=True, unready_since=NOW)})
    assert decide(cluster, started).step is None
    for_long = replace(seen, pods={"c-0": ObservedPod(name="c-0", running=True, unready_since=LONG_AGO)})
    assert decide(cluster, for_long).step is None


def test_who_may_have_voted_is_heard_before_a_quorum_is_lost() -> None:
    """One of two has lost its claim, as far as was known last: the other one may know better."""
    cluster = a_cluster(size=1, healing=Healing(restore_from_backup=True))
    cluster.status.members.ready, cluster.status.members.unready = ["c-0"], ["c-1"]
    seen = lost(healthy(cluster, 1), kept=BACKUP)
    started = replace(seen, pods={"c-0": ObservedPod(name="c-0", running=True, unready_since=NOW)})
    assert decide(cluster, started).step is None
    for_long = replace(seen, pods={"c-0": ObservedPod(name="c-0", running=True, unready_since=LONG_AGO)})
    assert decide(cluster, for_long).step == Restore("newest")


def test_a_disk_that_fails_once_has_not_lost_its_data() -> None:
    """An error of a network's disk passes: nothing goes back to a backup because of it."""
    cluster = a_cluster(healing=Healing(restore_from_backup=True))
    seen = replace(healthy(cluster), agreed=False, kept=BACKUP)
    seen = replace(seen, reports={"c-0": replace(seen.reports["c-0"], leader=0)})
    once = down(seen, "c-1", "c-2", trouble="disk", restarts=1)
    assert decide(cluster, once).step is None
    long = down(seen, "c-1", "c-2", trouble="disk", restarts=5, unready_since=NOW)
    assert decide(cluster, long).step is None
    again = down(seen, "c-1", "c-2", trouble="disk", restarts=5, unready_since=LONG_AGO)
    assert decide(cluster, again).step == Restore("newest")


def test_survivors_are_started_and_asked_before_one_is_chosen() -> None:
    """Of five, three have lost their data: the one that knows most goes on, also after it was stopped for it."""
    cluster = a_cluster(size=5, healing=Healing(force_new_cluster=True))
    cluster.status.members.unready = [f"c-{number}" for number in range(5)]
    whole = healthy(cluster, 5)
    two = {name: claim for name, claim in whole.claims.items() if name in {"c-1", "c-3"}}
    seen = lost(whole, claims=two)
    first = decide(cluster, seen).step
    assert isinstance(first, StartMember)
    assert first.start.how == "return"
    reports = {name: replace(whole.reports[name], leader=0) for name in two}
    asked = replace(seen, pods={name: whole.pods[name] for name in two}, reports=reports, members=whole.members)
    assert decide(cluster, asked).step == ChooseSurvivor("c-3")
    chosen = replace(asked, claims={**two, "c-3": ObservedClaim(name="c-3", chosen=True)})
    assert decide(cluster, chosen).step == DeletePod("c-3")
    stopped = replace(chosen, pods={"c-1": whole.pods["c-1"]}, reports={"c-1": reports["c-1"]})
    last = decide(cluster, stopped).step
    assert isinstance(last, StartMember)
    assert (last.name, last.start.how) == ("c-3", "survivor")
    back = replace(stopped, claims={**whole.claims, "c-3": ObservedClaim(name="c-3", chosen=True)})
    assert decide(cluster, back).step == ChooseSurvivor("c-3", chosen=False)
    forced = replace(back, pods={"c-3": ObservedPod(name="c-3", forced=True)}, reports={})
    assert decide(cluster, forced).step == DeletePod("c-3")


def test_a_member_that_cannot_start_and_loses_its_claim_is_replaced() -> None:
    """Its pod is not made anew, since it would lose its data; the others have it too."""
    cluster = a_cluster()
    seen = down(healthy(cluster), "c-1", trouble="image", template="other")
    seen = replace(seen, claims={**seen.claims, "c-1": ObservedClaim(name="c-1", ending=True)})
    assert decide(cluster, seen).step == RemoveMember(seen.members[1])


def test_a_choice_is_forgotten_when_a_quorum_is_there() -> None:
    """After the quorum returns, the next loss chooses anew."""
    cluster = a_cluster()
    seen = healthy(cluster)
    seen = replace(seen, claims={**seen.claims, "c-1": ObservedClaim(name="c-1", chosen=True)})
    assert decide(cluster, seen).step == ChooseSurvivor("c-1", chosen=False)


def test_members_that_only_the_operator_cannot_reach_are_not_said_to_be_down() -> None:
    """Their pods are ready, which a quorum says: whether they serve is not known here."""
    cluster = a_cluster()
    cluster.status.members.ready = ["c-0", "c-1", "c-2"]
    seen = replace(healthy(cluster), reports={}, members=(), agreed=False)
    plan = decide(cluster, seen)
    report_status(cluster, seen, plan)
    available = cluster.status.condition("Available")
    assert plan.reason == "Unreachable"
    assert available is not None
    assert (available.status, available.reason, cluster.status.ready) == ("Unknown", "Unreachable", "3/3")


# Beginning


def test_nobody_is_started_while_a_restore_has_emptied_the_cluster() -> None:
    """Somebody applies the old manifest, without its pause: what members had before must not meet what is restored."""
    cluster = a_cluster()
    cluster.status.cluster_id = ""
    seen = lost(healthy(cluster), kept=BackupState(restoring="back: c-0 begins with the snapshot", emptying=True))
    assert decide(cluster, seen).step is None
    one = replace(seen, claims={"c-0": ObservedClaim(name="c-0")})
    assert decide(cluster, one).step is None
    joining = replace(one, kept=BackupState(restoring="back: 0 of 3 members serve"))
    assert isinstance(decide(cluster, joining).step, StartMember)
    assert decide(cluster, replace(joining, claims={})).step is None


def test_what_is_restored_is_another_cluster_than_before() -> None:
    """With the same token etcd gives it the same identity: members of before, which nobody could stop, would be let in.

    And it is not made with a version that was given up.
    """
    cluster = a_cluster(version="3.5.21")
    cluster.spec.version = cluster.status.failed_version = "3.5.22"
    cluster.status.failed_generation = 1
    restore = EtcdRestore(name="back", spec=EtcdRestoreSpec(etcd_cluster=ClusterReference(name="c")))
    restore.metadata.uid, restore.status.seed = "restore", "c-0"
    made = seed(cluster, restore, "python")
    command = next(each.command or [] for each in made.spec.init_containers or [] if each.name == "make-data")
    assert "--initial-cluster-token=restore" in command
    assert made.annotations["etcd.version"] == "3.5.21"


@pytest.mark.parametrize(("version", "rise"), [("3.4.30", 0), ("3.5.9", 0), ("3.5.10", 1000), ("3.6.8", 1000)])
def test_a_restore_raises_the_revision_where_etcds_tool_can(version: str, rise: int) -> None:
    """Who watches is told of it, and not left with revisions that come a second time; other tools know no such flag."""
    restore = EtcdRestore(name="back", spec=EtcdRestoreSpec(etcd_cluster=ClusterReference(name="c")))
    restore.status.seed, restore.status.etcd_revision, restore.status.next_revision = "c-0", 7, 1007
    made = seed(a_cluster(version=version), restore, "python")
    command = next(each.command or [] for each in made.spec.init_containers or [] if each.name == "make-data")
    flags = [flag for flag in command if "bump" in flag or "compacted" in flag]
    assert flags == ([f"--bump-revision={rise}", "--mark-compacted"] if rise else [])


def test_only_a_member_of_its_own_gives_a_new_cluster_its_identity() -> None:
    """The address of a pod that is gone may be somebody else's by now, of a cluster with the same name elsewhere."""
    cluster = a_cluster(size=1)
    cluster.status.cluster_id = ""
    seen = healthy(cluster, 1)
    assert decide(cluster, seen).step == Remember(1)
    other = ObservedMember(id=1, name="c-0", peer_url="http://c-0.c.other.svc:2380")
    plan = decide(cluster, replace(seen, members=(other,)))
    assert plan.step is None
    assert "c-0" in plan.message


def test_a_new_cluster_waits_for_what_an_earlier_one_of_its_name_has_left() -> None:
    """It would begin with that one's data, which goes when the garbage collector comes."""
    cluster = a_cluster(size=1)
    cluster.status.cluster_id = ""
    plan = decide(cluster, Observation(now=NOW, others=frozenset({"c-0"})))
    assert plan.step is None
    assert "c-0" in plan.message
    formed = a_cluster(size=4)
    assert decide(formed, replace(healthy(formed), others=frozenset({"c-3"}))).step == AddMember("c-4", learner=True)


# Versions


def test_a_version_that_hangs_is_taken_back_where_there_is_only_one_member() -> None:
    """A single member that hangs with a new version returns to the version before."""
    cluster = a_cluster(size=1, version="3.5.20")
    whole = healthy(cluster, 1)
    cluster.spec.version, cluster.status.failed_version, cluster.status.failed_generation = "3.5.21", "3.5.21", 1
    pod = replace(whole.pods["c-0"], version="3.5.21", template="other", ready=False, unready_since=LONG_AGO)
    seen = replace(whole, pods={"c-0": pod}, reports={}, members=(), agreed=False)
    assert decide(cluster, seen).step == DeletePod("c-0")


def test_a_version_with_a_suffix_is_the_version_that_runs() -> None:
    """etcd does not know the suffix of its image: a crash is no failed roll-out."""
    cluster = a_cluster(version="3.5.21-0")
    seen = healthy(cluster)
    spoken = {name: replace(report, version="3.5.21") for name, report in seen.reports.items()}
    seen = replace(seen, reports=spoken)
    report_status(cluster, seen, decide(cluster, seen))
    assert (cluster.status.current_version, cluster.status.target_version) == ("3.5.21-0", "")
    crashed = down(seen, "c-1", trouble="crash", restarts=1, unready_since=LONG_AGO)
    assert decide(cluster, crashed).reason == "Healing"


def test_the_next_version_waits_while_members_have_not_agreed_on_any() -> None:
    """The roll-out waits while etcd reports a word instead of a version."""
    cluster = a_cluster(version="3.5.21")
    seen = healthy(cluster)
    cluster.spec.version = "3.6.8"
    plan = decide(cluster, replace(seen, agreed_version="not_decided"))
    assert (plan.reason, plan.step) == ("RollingOut", None)


@pytest.mark.parametrize("trouble", ["image", "unschedulable"])
def test_a_pod_that_may_hold_data_is_not_made_anew_while_nobody_says_who_has_started(trouble: str) -> None:
    """Without claims its data is in the pod, also while its container cannot start; one that was never placed has none."""
    cluster = a_cluster(storage=None)
    seen = down(healthy(cluster), "c-0", "c-1", "c-2", trouble=trouble, template="other", unready_since=NOW)
    seen = replace(seen, members=(), agreed=False)
    assert isinstance(decide(cluster, seen).step, DeletePod) == (trouble == "unschedulable")


def test_a_member_of_which_nobody_knows_is_replaced_and_the_others_stay() -> None:
    """Somebody has added one by hand, at an address that is no pod's, and another one twice."""
    cluster = a_cluster()
    seen = healthy(cluster)
    strange = ObservedMember(id=9, name="10", peer_url="http://10.0.0.9:2380")
    assert decide(cluster, replace(seen, members=(*seen.members, strange))).step == RemoveMember(strange)
    twin = ObservedMember(id=9, name="c-1", learner=True, peer_url="http://c-1.elsewhere.svc:2380")
    seen = replace(seen, members=(*seen.members, twin))
    assert decide(cluster, replace(seen, now=seen.now + timedelta(hours=1))).step == RemoveMember(twin)


def test_a_voice_of_another_member_is_not_this_ones() -> None:
    """Two pods have had the same address: who answers there is only one of them."""
    cluster = a_cluster()
    seen = healthy(cluster)
    mixed = {**seen.reports, "c-1": MemberReport(member=1, cluster=1, version="3.5.21", leader=1)}
    assert decide(cluster, replace(seen, reports=mixed)).step is None
