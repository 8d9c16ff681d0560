"""Plans repairs: members that are absent, broken or still joining, and leftovers of removed members."""

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
    "gone": "its node is deleted",
    "unreachable": "its node is unreachable",
    "stranded": "no node can mount its volume",
}


def recreate_unstartable(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Recreates pods that cannot start and differ from the spec: the spec may have fixed the cause."""
    for name, pod in sorted(seen.pods.items()):
        given_up = _has_failed_version(cluster, pod) and name not in seen.reports and not pod.ready
        cannot = given_up or pod.trouble in {"image", "unschedulable"}
        if cannot and not pod.ending and is_outdated(cluster, pod) and _has_nothing_to_lose(cluster, seen, pod):
            message = (
                f"{name} cannot start ({pod.message or 'it does not answer'}): it is recreated from the current spec"
            )
            return ClusterPlan("Healing", message, DeletePod(name))
    return None


def _has_failed_version(cluster: EtcdCluster, pod: ObservedPod) -> bool:
    return bool(cluster.status.failed_version) and pod.version == cluster.status.failed_version


def _has_nothing_to_lose(cluster: EtcdCluster, seen: Observation, pod: ObservedPod) -> bool:
    """Reports whether deleting the pod loses no data. Without a member list no member counts as not started."""
    if keeps_data(cluster):
        return not seen.loses_data_with_its_pod(pod.name)
    started = {member.name for member in seen.members if member.started}
    return pod.trouble == "unschedulable" or (bool(seen.members) and pod.name not in started)


def settle_started(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Removes the flags of a first start from members that have started: from then on they need their data."""
    for member in seen.members:
        pod = seen.pods.get(member.name)
        if pod is not None and (pod.first or pod.forced) and not pod.ending and seen.is_healthy(member):
            return ClusterPlan(
                "Joining", f"{member.name} has started: its pod loses the flags of a first start", Settle(member.name)
            )
    for name, claim in sorted(seen.claims.items()):
        if claim.chosen:
            return ClusterPlan(
                "Joining",
                f"the quorum is back: the claim {name} loses its survivor annotation",
                ChooseSurvivor(name, chosen=False),
            )
    return None


def remove_strays(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Deletes pods, then claims, that belong to no member of the list that a quorum confirmed."""
    for name, pod in sorted(seen.pods.items()):
        if name not in seen.names and not pod.ending:
            return ClusterPlan("TidyingUp", f"{name} is not a member: its pod is deleted", DeletePod(name))
    for name, claim in sorted(seen.claims.items()):
        if name not in seen.names and name not in seen.pods and not claim.ending:
            return ClusterPlan("TidyingUp", f"{name} is not a member: its claim is deleted", DeleteClaim(name))
    return None


def restart_absent(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Replaces members that lost pod and data, and restarts those that still have their data.

    Removals come first, because a joining member gets the member list when it starts.
    """
    gone = next((plan for member in seen.members if (plan := _gone(cluster, seen, member)) is not None), None)
    if gone is not None and gone.step is not None:
        return gone
    for member in seen.members:
        if member.name not in seen.pods and (not member.started or has_data(cluster, seen, member.name)):
            return start_again(cluster, seen, member)
    return gone


def _gone(cluster: EtcdCluster, seen: Observation, member: ObservedMember) -> ClusterPlan | None:
    """Removes a member whose data is lost, or will be with its terminating pod, while there is a quorum for it."""
    if any(each.name == member.name and seen.is_healthy(each) and each != member for each in seen.members):
        return _replaced(seen, member, "another member has its name and pod")
    pod = seen.pods.get(member.name)
    if (pod is None or pod.ending) and member.started and not has_data(cluster, seen, member.name):
        return _replaced(seen, member, "its data is lost")
    return None


def replace_broken(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Replaces members that will not recover by themselves."""
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
        return "the member list has changed since its pod was created, so it cannot join"
    if pod.trouble == "crash" and pod.restarts >= (_TRIES if member.started else _TRIES_TO_JOIN):
        return f"it cannot start ({pod.message})"
    if pod.trouble and seen.loses_data_with_its_pod(member.name):
        return f"it cannot start ({pod.message}), and its claim is terminating"
    if pod.trouble == "unschedulable" and keeps_data(cluster) and member.name not in seen.claims:
        return "its claim was deleted before its pod was scheduled"
    silent = seen.silence(pod)
    if pod.trouble != "image" and silent >= cluster.spec.healing.replace_after_seconds:
        return f"it has not answered for {silent:.0f} s"
    return _why_lost(cluster, seen, pod) if pod.lost and member.started else ""


def _why_lost(cluster: EtcdCluster, seen: Observation, pod: ObservedPod) -> str:
    """Returns why a member on a lost node is replaced: at once if its data is lost, otherwise after replaceLostAfterSeconds."""
    since = pod.unready_since or _degraded_since(cluster)
    silent = (seen.now - since).total_seconds() if since else 0.0
    hopeless = pod.lost == "gone" and not keeps_data(cluster)
    if not hopeless and silent < cluster.spec.healing.replace_lost_after_seconds:
        return ""
    return f"{_LOST[pod.lost]}, and it has not answered for {silent:.0f} s"


def _degraded_since(cluster: EtcdCluster) -> datetime | None:
    """Returns since when the cluster is degraded: nothing updates the readiness of a pod whose node is deleted."""
    degraded = cluster.status.condition("Degraded")
    return degraded.last_transition_time if degraded is not None and degraded.status == "True" else None


def _replaced(seen: Observation, member: ObservedMember, why: str) -> ClusterPlan:
    if not seen.is_whole_without(member):
        return wait("Healing", f"{member.name} cannot be replaced, although {why}: the others have no quorum")
    return ClusterPlan("Healing", f"{member.name} is replaced: {why}", RemoveMember(member))


def promote_learner(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Promotes one learner at a time, and waits for members that have not started."""
    for member in seen.members:
        if member.learner and len(seen.members) > cluster.spec.size + 1:
            return ClusterPlan("ScalingDown", f"{member.name} is no longer needed: it is removed", RemoveMember(member))
        if not member.started or (member.learner and not seen.stays(member)):
            return wait("Joining", _awaited(seen, member))
        if member.learner:
            return ClusterPlan("Joining", f"{member.name} has caught up: it is promoted to a voter", Promote(member))
    return None


def _awaited(seen: Observation, member: ObservedMember) -> str:
    pod = seen.pods.get(member.name)
    message = f": {pod.message}" if pod is not None and pod.message else ""
    return f"waiting for {member.name} to start and catch up{message}"
