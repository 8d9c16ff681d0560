"""`decide` asks the concerns in order; the first one that returns a plan wins. Scaling and growth are here too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import ordinal_of
from etcd_operator.observation import Observation, ObservedMember
from etcd_operator.plan.alarms import free_space, replace_corrupt, replace_diverged
from etcd_operator.plan.bootstrap import form_cluster, form_from_snapshot, identity_mismatch, stopped
from etcd_operator.plan.quorum_loss import without_quorum
from etcd_operator.plan.repair import (
    promote_learner,
    recreate_unstartable,
    remove_strays,
    replace_broken,
    restart_absent,
    settle_started,
)
from etcd_operator.plan.rollout import (
    add_member,
    awaits_snapshot,
    enable_auth,
    failed_rollout,
    is_outdated_or_doomed,
    lowest_version,
    refuse_unknown_operator,
    refuse_wrong_secrets,
    rollout,
    secure_peers,
    snapshot_first,
    with_current_version,
)
from etcd_operator.plan.steps import ClusterPlan, GrowClaim, MoveLeader, RemoveMember, done, wait


def scale_down(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Removes surplus members: unhealthy before healthy, outdated before current, highest ordinal first, leader last."""
    if len(seen.members) <= cluster.spec.size:
        return None
    victim = min(seen.members, key=lambda member: _worth(cluster, seen, member))
    message = f"the cluster has {len(seen.members)} members, spec.size is {cluster.spec.size}"
    if not seen.is_whole_without(victim):
        return wait("ScalingDown", f"{message}; {victim.name} cannot be removed: the others have no quorum")
    leader = seen.leader
    if leader is not None and leader.id == victim.id and lowest_version(cluster, seen).moves_leaders:
        return _move_leader_first(cluster, seen, leader, message)
    return ClusterPlan("ScalingDown", f"{message}: {victim.name} is removed", RemoveMember(victim))


def _worth(cluster: EtcdCluster, seen: Observation, member: ObservedMember) -> tuple[bool, bool, bool, int]:
    is_new = member.name in seen.pods and not is_outdated_or_doomed(cluster, seen, member.name)
    leads = seen.leader is not None and seen.leader.id == member.id
    return (seen.stays(member), is_new, leads, -ordinal_of(member.name))


def _move_leader_first(cluster: EtcdCluster, seen: Observation, leader: ObservedMember, message: str) -> ClusterPlan:
    others = [member for member in seen.healthy_voters if member.id != leader.id]
    heir = max(others, key=lambda member: _worth(cluster, seen, member))
    return ClusterPlan(
        "ScalingDown",
        f"{message}: {heir.name} becomes leader before {leader.name} is removed",
        MoveLeader(leader, heir),
    )


def wait_for_healthy(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Waits while a member is unhealthy: optional changes follow later."""
    sick = [member.name for member in seen.members if not seen.stays(member)]
    if not sick:
        return None
    message = "; ".join(seen.pods[name].message for name in sick if name in seen.pods and seen.pods[name].message)
    return wait("Healing", f"waiting for {', '.join(sick)}{f' ({message})' if message else ''}")


def grow_claims(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Grows a claim that is smaller than the spec."""
    for name, claim in sorted(seen.claims.items()):
        if claim.small and not claim.ending:
            return ClusterPlan(
                "Growing", f"the claim of {name} is smaller than the spec: its request is raised", GrowClaim(name)
            )
    return None


def scale_up(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Adds one member at a time."""
    if len(seen.members) >= cluster.spec.size:
        return None
    message = f"the cluster has {len(seen.members)} members, spec.size is {cluster.spec.size}"
    return ClusterPlan("ScalingUp", *add_member(cluster, seen, message))


Concern = Callable[[EtcdCluster, Observation], ClusterPlan | None]


def _paused(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    return done("Paused", "spec.paused is true: the operator does nothing") if cluster.spec.paused else None


_NEEDED: Final[tuple[Concern, ...]] = (
    _paused,
    identity_mismatch,
    stopped,
    refuse_wrong_secrets,
    refuse_unknown_operator,
    form_from_snapshot,
    form_cluster,
    failed_rollout,
    recreate_unstartable,
    without_quorum,
    settle_started,
    remove_strays,
    replace_corrupt,
    replace_diverged,
    restart_absent,
    replace_broken,
    free_space,
    promote_learner,
    scale_down,
    wait_for_healthy,
)
_CHOSEN: Final[tuple[Concern, ...]] = (
    grow_claims,
    rollout,
    secure_peers,
    enable_auth,
    scale_up,
)


def decide(cluster: EtcdCluster, seen: Observation) -> ClusterPlan:
    """Returns the next step from the observed state towards the spec.

    It keeps no history: after an interrupted step it continues from the observed state. No step removes a voter that the
    quorum needs, and no former member starts without its data.
    """
    if awaits_snapshot(cluster, seen):
        plan = _first(_NEEDED, with_current_version(cluster), seen)
        return plan if plan is not None and (plan.step or plan.stuck) else snapshot_first(cluster, seen)
    return _first((*_NEEDED, *_CHOSEN), cluster, seen) or done("Ready", f"{len(seen.voters)} members serve")


def _first(concerns: tuple[Concern, ...], cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    return next((plan for concern in concerns if (plan := concern(cluster, seen)) is not None), None)
