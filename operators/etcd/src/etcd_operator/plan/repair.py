"""Members that are missing, broken, not yet what they should be, or no members any more."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import keeps_data
from etcd_operator.observation import Observation, ObservedMember, ObservedPod
from etcd_operator.plan.quorum_loss import has_data, start_again
from etcd_operator.plan.rollout import is_outdated
from etcd_operator.plan.steps import (
    ChooseSurvivor,
    ClusterPlan,
    DeleteClaim,
    DeletePod,
    Promote,
    RemoveMember,
    Settle,
    wait,
)

_TRIES: Final = 5
_TRIES_TO_JOIN: Final = 3
_LOST: Final = {
    "gone": "its node is gone",
    "unreachable": "its node cannot be reached",
    "stranded": "no node has its volume",
}


def recreate_unstartable(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Pods that do not run, and are not what would be made now: the cause may be gone with them."""
    for name, pod in sorted(seen.pods.items()):
        given_up = _is_given_up(cluster, pod) and name not in seen.reports and not pod.ready
        cannot = given_up or pod.trouble in {"image", "unschedulable"}
        if cannot and not pod.ending and is_outdated(cluster, pod) and _has_nothing_to_lose(cluster, seen, pod):
            message = f"{name} cannot start ({pod.message or 'it is silent'}): it is made anew as asked for now"
            return ClusterPlan("Healing", message, DeletePod(name))
    return None


def _is_given_up(cluster: EtcdCluster, pod: ObservedPod) -> bool:
    return bool(cluster.status.failed_version) and pod.version == cluster.status.failed_version


def _has_nothing_to_lose(cluster: EtcdCluster, seen: Observation, pod: ObservedPod) -> bool:
    """Whether what it has outlives it, or it has nothing. Who has started is not known while nobody says so."""
    if keeps_data(cluster):
        return not seen.loses_data_with_its_pod(pod.name)
    started = {member.name for member in seen.members if member.started}
    return pod.trouble == "unschedulable" or (bool(seen.members) and pod.name not in started)


def settle_started(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Who has started once starts with its data from now on, or not at all."""
    for member in seen.members:
        pod = seen.pods.get(member.name)
        if pod is not None and (pod.first or pod.forced) and not pod.ending and seen.is_healthy(member):
            return ClusterPlan("Joining", f"{member.name} has started", Settle(member.name))
    for name, claim in sorted(seen.claims.items()):
        if claim.chosen:
            return ClusterPlan("Joining", f"{name} need not go on alone", ChooseSurvivor(name, chosen=False))
    return None


def remove_strays(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Pods, then claims, of those who are no members: a quorum has said so just now."""
    for name, pod in sorted(seen.pods.items()):
        if name not in seen.names and not pod.ending:
            return ClusterPlan("TidyingUp", f"{name} is no member: its pod goes", DeletePod(name))
    for name, claim in sorted(seen.claims.items()):
        if name not in seen.names and name not in seen.pods and not claim.ending:
            return ClusterPlan("TidyingUp", f"{name} is no member: its data goes", DeleteClaim(name))
    return None


def restart_absent(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Members without a pod: replaced without their data, started again with it. Who joins is told of the others when it is
    started, so that those who are to go, and can, go before.
    """
    gone = next((plan for member in seen.members if (plan := _gone(cluster, seen, member)) is not None), None)
    if gone is not None and gone.step is not None:
        return gone
    for member in seen.members:
        if member.name not in seen.pods and (not member.started or has_data(cluster, seen, member.name)):
            return start_again(cluster, seen, member)
    return gone


def _gone(cluster: EtcdCluster, seen: Observation, member: ObservedMember) -> ClusterPlan | None:
    """If the data goes with a pod that is ending, its member goes while it can still be agreed on."""
    if any(each.name == member.name and seen.is_healthy(each) and each != member for each in seen.members):
        return _replaced(seen, member, "another member has its name and its pod")
    pod = seen.pods.get(member.name)
    if (pod is None or pod.ending) and member.started and not has_data(cluster, seen, member.name):
        return _replaced(seen, member, "its data is gone")
    return None


def replace_broken(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Members that will not come back by themselves."""
    for member in seen.members:
        pod = seen.pods.get(member.name)
        why = _why_replace(cluster, seen, member, pod) if pod is not None and not seen.is_healthy(member) else ""
        if why:
            return _replaced(seen, member, why)
    return None


def _why_replace(cluster: EtcdCluster, seen: Observation, member: ObservedMember, pod: ObservedPod) -> str:
    if pod.trouble == "disk":
        return f"its data is lost or corrupt ({pod.message})"
    if pod.trouble == "crash" and not member.started and seen.is_misled(pod):
        return "it was told of other members than there are now, and cannot join"
    if pod.trouble == "crash" and pod.restarts >= (_TRIES if member.started else _TRIES_TO_JOIN):
        return f"it cannot start ({pod.message})"
    if pod.trouble and seen.loses_data_with_its_pod(member.name):
        return f"it cannot start ({pod.message}), and its claim is ending"
    if pod.trouble == "unschedulable" and keeps_data(cluster) and member.name not in seen.claims:
        return "its claim went before its pod had a node"
    silent = seen.silence(pod)
    if pod.trouble != "image" and silent >= cluster.spec.healing.replace_after_seconds:
        return f"it has been silent for {silent:.0f} s"
    return _why_lost(cluster, seen, pod) if pod.lost and member.started else ""


def _why_lost(cluster: EtcdCluster, seen: Observation, pod: ObservedPod) -> str:
    """A node that is gone takes what has no claim with it. Of what is in a claim it can be hoped for a while that it returns."""
    since = pod.unready_since or _degraded_since(cluster)
    silent = (seen.now - since).total_seconds() if since else 0.0
    hopeless = pod.lost == "gone" and not keeps_data(cluster)
    if not hopeless and silent < cluster.spec.healing.replace_lost_after_seconds:
        return ""
    return f"{_LOST[pod.lost]}, and it has been silent for {silent:.0f} s"


def _degraded_since(cluster: EtcdCluster) -> datetime | None:
    """Nobody says of a pod that it is not ready whose node is no node any more."""
    degraded = cluster.status.condition("Degraded")
    return degraded.last_transition_time if degraded is not None and degraded.status == "True" else None


def _replaced(seen: Observation, member: ObservedMember, why: str) -> ClusterPlan:
    if not seen.is_whole_without(member):
        return wait("Healing", f"{member.name} cannot be replaced, although {why}: the others would be too few")
    return ClusterPlan("Healing", f"{member.name} is replaced: {why}", RemoveMember(member))


def promote_learner(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """One learner at a time, and nothing else meanwhile."""
    for member in seen.members:
        if member.learner and len(seen.members) > cluster.spec.size + 1:
            return ClusterPlan("ScalingDown", f"{member.name} is not needed any more, and goes", RemoveMember(member))
        if not member.started or (member.learner and not seen.stays(member)):
            return wait("Joining", _awaited(seen, member))
        if member.learner:
            return ClusterPlan("Joining", f"{member.name} has caught up, and may vote", Promote(member))
    return None


def _awaited(seen: Observation, member: ObservedMember) -> str:
    pod = seen.pods.get(member.name)
    message = f": {pod.message}" if pod is not None and pod.message else ""
    return f"waiting for {member.name} to start and catch up{message}"
