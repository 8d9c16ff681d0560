"""Another version, or other pods: one member at a time, the leader last, back again if it does not work."""

from __future__ import annotations

from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import keeps_data, member_name, mode_of, ordinal_of, secret_names, template_of
from etcd_operator.observation import Observation, ObservedMember, ObservedPod
from etcd_operator.plan.steps import (
    AddMember,
    AskWho,
    BackUp,
    ClusterPlan,
    DeletePod,
    GiveUpVersion,
    MoveLeader,
    Secured,
    SecurePeer,
    stuck,
    wait,
)
from etcd_operator.versions import EtcdVersion, upgrade_refusal

_SOON: Final = 3.0
"""Nobody tells of Secrets: they are looked at again."""


def refuse_wrong_secrets(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Nothing is started in plain text, or with certificates that nobody would take, instead."""
    if seen.faults:
        return ClusterPlan("SecretsWrong", "; ".join(seen.faults), after=_SOON, stuck=True)
    if secret_names(cluster).server and not EtcdVersion.of(cluster.spec.version).has_metrics_port:
        message = f"etcd {cluster.spec.version} has no port at which it can be probed without a certificate"
        return stuck("Unsupported", f"{message}: set spec.version to 3.3.0 or later, or leave TLS for clients out")
    return None


def refuse_unknown_operator(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """The operator is not taken for root: what it says of its members could not be acted upon."""
    if seen.auth != "refused":
        return None
    if cluster.spec.auth is None:
        return stuck(
            "AccessRefused", "etcd asks for a password, and spec.auth is not set: set it, with root's password"
        )
    return stuck(
        "AccessRefused", "etcd refuses the password of root: put the one that it knows into the Secret of spec.auth"
    )


def all_secure(cluster: EtcdCluster, seen: Observation) -> bool:
    """Whether all members reach each other as is asked for."""
    return bool(seen.members) and not any(_is_plain(cluster, member) for member in seen.members)


def _is_plain(cluster: EtcdCluster, member: ObservedMember) -> bool:
    return bool(secret_names(cluster).peer) and not member.peer_url.startswith("https://")


def secure_peers(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Every pod serves in both ways, and can go both: the others are told the new way to one member after the other."""
    old = any(is_outdated(cluster, pod) for pod in seen.pods.values())
    if mode_of(cluster) != "both" or old:
        return None
    for member in seen.members:
        if _is_plain(cluster, member):
            return ClusterPlan(
                "Securing", f"{member.name} is reached with TLS by the others from now on", SecurePeer(member)
            )
    return ClusterPlan("Securing", "all members reach each other with TLS: plain text is given up", Secured())


def enable_auth(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """The first of etcd's users is root."""
    if seen.auth != "off":
        return None
    return ClusterPlan("Securing", "from now on nobody may do anything without a password", AskWho())


def awaits_snapshot(cluster: EtcdCluster, seen: Observation) -> bool:
    """Whether another version is asked for that no pod has yet, and there is a place for a snapshot but none in it."""
    current = cluster.status.current_version
    if not current or not seen.agreed or cluster.spec.paused or not cluster.spec.size:
        return False
    wanted = wanted_version(cluster).removeprefix("v")
    if EtcdVersion.of(wanted) == EtcdVersion.of(current) or upgrade_refusal(
        EtcdVersion.of(current), EtcdVersion.of(wanted)
    ):
        return False
    begun = any(pod.version == wanted for pod in seen.pods.values())
    return not begun and seen.kept.can_save and not seen.kept.saved


def with_current_version(cluster: EtcdCluster) -> EtcdCluster:
    """The cluster as if its version had not been changed."""
    held = cluster.copy()
    held.spec.version = cluster.status.current_version
    return held


def snapshot_first(cluster: EtcdCluster, seen: Observation) -> ClusterPlan:
    """Asks for the snapshot, and waits for it."""
    message = f"before {cluster.spec.version} comes a snapshot"
    if seen.kept.saving:
        return wait("RollingOut", f"{message}: {seen.kept.saving}")
    return ClusterPlan("RollingOut", f"{message} of what {cluster.status.current_version} has", BackUp())


_PAIR: Final = 2
_PATIENCE: Final = 120.0
"""So long may a member take to serve with what is new."""


def wanted_version(cluster: EtcdCluster) -> str:
    """What is asked for; what was there before, where that was tried in vain."""
    status = cluster.status
    given_up = status.failed_version and status.failed_generation == cluster.metadata.generation
    if given_up and status.failed_version == cluster.spec.version.removeprefix("v"):
        return status.current_version or cluster.spec.version
    return cluster.spec.version


def version_to_run(cluster: EtcdCluster, name: str) -> str:
    """The version that a pod is made with: never one that the cluster cannot become."""
    wanted = wanted_version(cluster)
    current = cluster.status.current_version
    return current if current and upgrade_refusal(EtcdVersion.of(current), EtcdVersion.of(wanted)) else wanted


def lowest_version(cluster: EtcdCluster, seen: Observation) -> EtcdVersion:
    """The version that the cluster as a whole has."""
    running = [EtcdVersion.of(report.version) for report in seen.reports.values() if report.version]
    return min(running, default=EtcdVersion.of(cluster.spec.version))


def is_outdated(cluster: EtcdCluster, pod: ObservedPod) -> bool:
    """Whether it is not what would be made now."""
    return pod.template != _template(cluster)


def is_outdated_or_doomed(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    """Whether a member's pod is not what would be made now, or its claim will not outlive it."""
    pod = seen.pods.get(name)
    return pod is not None and (is_outdated(cluster, pod) or seen.loses_data_with_its_pod(name))


def _template(cluster: EtcdCluster) -> str:
    made = cluster.copy()
    made.spec.version = version_to_run(cluster, "")
    return template_of(made)


def failed_rollout(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """A member that does not serve with the new version, while the old one is still there to go back to.

    Without a quorum it is the new version that is to blame only where there is no other member.
    """
    wanted = wanted_version(cluster).removeprefix("v")
    current = cluster.status.current_version
    if not current or wanted == current or wanted != cluster.spec.version.removeprefix("v"):
        return None
    if not seen.agreed and len(seen.pods) > 1:
        return None
    well = {member.name for member in seen.members if seen.is_healthy(member)}
    for name, pod in sorted(seen.pods.items()):
        if pod.version == wanted and name not in well and _has_failed(seen, pod) and not seen.is_misled(pod):
            message = f"{name} does not serve with {wanted} ({pod.message or 'it is silent'}): back to {current}"
            return ClusterPlan("RolloutFailed", message, GiveUpVersion(wanted))
    return None


def _has_failed(seen: Observation, pod: ObservedPod) -> bool:
    return pod.trouble in {"image", "crash", "disk"} or seen.silence(pod) >= _PATIENCE


def rollout(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """The next member whose pod is not what is asked for. Of two none can be done without: if there is to be a third, it
    comes first. None is ready while there is no space, and a larger quota is how it gets some.
    """
    old = [member for member in seen.members if is_outdated_or_doomed(cluster, seen, member.name)]
    if not old:
        return _refused(cluster, seen)
    if len(seen.voters) == _PAIR and len(seen.members) < cluster.spec.size:
        return None
    unready = [member.name for member in seen.members if not seen.pods[member.name].ready]
    if unready and not any(alarm == "NOSPACE" for _, alarm in seen.alarms):
        return wait("RollingOut", f"waiting for {', '.join(unready)} to be ready before the next")
    lowest = lowest_version(cluster, seen)
    if seen.agreed_version and not _have_agreed(seen.agreed_version, lowest):
        message = f"waiting for members to agree that all of them have {lowest.major}.{lowest.minor}"
        return wait("RollingOut", f"{message}: with the next version they would not start before")
    leader = seen.leader
    member = min(old, key=lambda each: (leader is not None and each.id == leader.id, -ordinal_of(each.name)))
    if not keeps_data(cluster):
        return _surge(cluster, seen, f"{member.name} is not as it is asked for now")
    if seen.loses_data_with_its_pod(member.name):
        return _surge(cluster, seen, f"{member.name} would lose its data with its pod, since its claim is ending")
    return _restart(cluster, seen, member)


def _have_agreed(said: str, lowest: EtcdVersion) -> bool:
    """Before members agree on any version they say so in a word."""
    return said[:1].isdigit() and EtcdVersion.of(said).minor >= lowest.minor


def _refused(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    why = upgrade_refusal(lowest_version(cluster, seen), EtcdVersion.of(cluster.spec.version)) if seen.reports else ""
    return stuck("RolloutRefused", why) if why else None


def _restart(cluster: EtcdCluster, seen: Observation, member: ObservedMember) -> ClusterPlan:
    leader = seen.leader
    others = [each for each in seen.healthy_voters if each.id != member.id]
    movable = lowest_version(cluster, seen).moves_leaders
    if leader is not None and leader.id == member.id and others and movable:
        heir = min(others, key=lambda each: ordinal_of(each.name))
        return ClusterPlan(
            "RollingOut", f"{heir.name} leads while {member.name} is started anew", MoveLeader(leader, heir)
        )
    return ClusterPlan("RollingOut", f"{member.name} is started anew, as it is asked for now", DeletePod(member.name))


def _surge(cluster: EtcdCluster, seen: Observation, why: str) -> ClusterPlan:
    return ClusterPlan("RollingOut", *add_member(cluster, seen, why))


def add_member(cluster: EtcdCluster, seen: Observation, message: str) -> tuple[str, AddMember]:
    """Room for one more member, with a name that nothing else has, and why in words."""
    name = member_name(cluster, seen.pods.keys() | seen.claims.keys() | seen.names | seen.others)
    learner = cluster.spec.learners and lowest_version(cluster, seen).has_learners
    return f"{message}: {name} joins, and {'learns first' if learner else 'votes at once'}", AddMember(name, learner)
