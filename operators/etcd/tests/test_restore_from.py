"""Clusters that are to begin with a snapshot, or were to: once with it, and never without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etcd_operator.backup_keeper import BackupState
from etcd_operator.destinations import LocalSource
from etcd_operator.kinds import EtcdCluster, RestoreSource
from etcd_operator.manifests import member_pod, template_of
from etcd_operator.observation import Observation, ObservedClaim, ObservedPod
from etcd_operator.observe import observe_pod
from etcd_operator.plan import decide
from etcd_operator.plan.steps import Remember, Restore, StartMember
from observed import NOW, a_cluster, healthy

NOTHING = Observation(now=NOW)


def given(current: str = "") -> EtcdCluster:
    """A cluster that has no identity, with the version that somebody was last heard to have."""
    cluster = a_cluster(restore_from=RestoreSource(local=LocalSource(path="some/etcd.db")))
    cluster.status.cluster_id, cluster.status.current_version = "", current
    return cluster


def test_a_new_cluster_begins_with_what_is_given() -> None:
    """Also if the restore is deleted before its first member has ever answered, whatever that has left."""
    left = replace(NOTHING, claims={"c-0": ObservedClaim(name="c-0")}, pods={"c-0": ObservedPod(name="c-0")})
    for seen in (NOTHING, left):
        assert decide(given(), seen).step == Restore("given")


def test_a_cluster_that_has_begun_does_not_go_back_to_what_was_given() -> None:
    """Another restore has stopped it, and was deleted; that of the beginning was long before. Its members have its data."""
    cluster = given("3.5.21")
    seen = replace(NOTHING, claims=healthy(cluster).claims)
    step = decide(cluster, seen).step
    assert isinstance(step, StartMember)
    assert step.start.how == "return"


def test_a_cluster_that_has_begun_goes_on_from_another_restore() -> None:
    """Its first member answers, or is started again: nobody waits for the one of the beginning, which is gone."""
    cluster = given("3.5.21")
    joining = BackupState(restoring="back: 0 of 3 members serve")
    one = healthy(cluster, 1)
    assert decide(cluster, replace(one, kept=joining)).step == Remember(1)
    stopped = replace(NOTHING, claims=one.claims, kept=joining)
    assert isinstance(decide(cluster, stopped).step, StartMember)


def test_a_cluster_that_is_being_restored_is_not_said_to_be_gone() -> None:
    """Without claims nothing of it is there meanwhile: whoever deleted the cluster then would stop its restore."""
    cluster = given("3.5.21")
    plan = decide(
        cluster, replace(NOTHING, kept=BackupState(restoring="back: it begins", emptying=True, begun_from=True))
    )
    assert (plan.step, plan.stuck) == (None, False)
    assert "is being restored" in plan.message
    gone = decide(cluster, NOTHING)
    assert (gone.step, gone.stuck) == (None, True)
    assert "create an EtcdRestore" in gone.message


def test_a_cluster_whose_restore_is_gone_does_not_begin_with_nothing() -> None:
    """It was stopped for it, and nothing of it is left: what it had is in the safety copy. Who wants it empty says so."""
    cluster = a_cluster(storage=None)
    cluster.status.cluster_id = ""
    plan = decide(cluster, replace(NOTHING, kept=BackupState(was_restored=True)))
    assert (plan.step, plan.stuck) == (None, True)
    assert "annotation" in plan.message
    assert isinstance(decide(cluster, NOTHING).step, StartMember)


def test_a_new_cluster_begins_though_its_manifest_is_from_one_that_was_restored() -> None:
    """Whoever makes a cluster again from what was written down of it takes its annotations along, and not its status."""
    cluster = a_cluster()
    cluster.status.cluster_id = cluster.status.current_version = ""
    step = decide(cluster, replace(NOTHING, kept=BackupState(was_restored=True))).step
    assert isinstance(step, StartMember)
    assert step.start.how == "seed"


@pytest.mark.parametrize("claim", [ObservedClaim(name="c-0", lost=True), ObservedClaim(name="c-0", ending=True)])
def test_a_claim_that_is_lost_is_not_what_a_restore_has_left(claim: ObservedClaim) -> None:
    """A pod would wait for it for ever, and nobody be told."""
    cluster = a_cluster()
    cluster.status.cluster_id = ""
    plan = decide(cluster, replace(NOTHING, claims={"c-0": claim}, kept=BackupState(was_restored=True)))
    assert (plan.step, plan.stuck) == (None, True)


def test_a_first_member_with_the_version_of_before_is_not_made_anew_again_and_again() -> None:
    """What was asked for last did not work, and was given up: the pod is what would be made now, while it starts too."""
    cluster = a_cluster(version="3.5.22")
    cluster.status.cluster_id, cluster.status.current_version = "", "3.5.21"
    cluster.status.failed_version, cluster.status.failed_generation = "3.5.22", 1
    one = replace(NOTHING, claims={"c-0": ObservedClaim(name="c-0")})
    for kept in (BackupState(), BackupState(was_restored=True)):
        step = decide(cluster, replace(one, kept=kept)).step
        assert isinstance(step, StartMember)
        made = member_pod(cluster, "c-0", step.start, version=step.version)
        starts = replace(one, pods={"c-0": observe_pod(made)}, kept=kept)
        assert decide(cluster, starts).step is None


def test_a_claim_that_a_restore_has_left_without_data_is_not_waited_for_in_silence() -> None:
    """Its etcd does not start, and no other member has what it lacks: only another restore brings data."""
    cluster = a_cluster()
    cluster.status.cluster_id = ""
    failed = ObservedPod(name="c-0", template=template_of(cluster), trouble="disk", message="cannot fetch cluster info")
    left = replace(
        NOTHING, pods={"c-0": failed}, claims={"c-0": ObservedClaim(name="c-0")}, kept=BackupState(was_restored=True)
    )
    plan = decide(cluster, left)
    assert (plan.step, plan.stuck) == (None, True)
    assert "cannot fetch cluster info" in plan.message
    assert "EtcdRestore" in plan.message


def test_what_a_restore_has_left_is_started_with_its_data_or_not_at_all() -> None:
    """Whether a claim has the snapshot, what was there before, or nothing yet is known by its etcd alone."""
    cluster = a_cluster()
    cluster.status.cluster_id = ""
    one = replace(NOTHING, claims={"c-0": ObservedClaim(name="c-0")})
    for restored, how in ((True, "return"), (False, "seed")):
        step = decide(cluster, replace(one, kept=BackupState(was_restored=restored))).step
        assert isinstance(step, StartMember)
        assert step.start.how == how
