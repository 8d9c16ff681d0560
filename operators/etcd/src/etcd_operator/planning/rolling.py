"""Another version, or other pods: one member at a time, the leader last, back again if it does not work."""

from __future__ import annotations

from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import keeps_data, member_name, ordinal_of, template_of
from etcd_operator.observation import MemberSeen, Observation, PodSeen
from etcd_operator.planning.plan import Plan, stuck, wait
from etcd_operator.steps import AddMember, DeletePod, GiveUpVersion, MoveLeader
from etcd_operator.versions import Version, why_not

__all__ = [
    "failed_rollout",
    "is_outdated",
    "is_to_go",
    "joins",
    "lowest_version",
    "rollout",
    "version_to_run",
    "wanted_version",
]

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
    return current if current and why_not(Version.of(current), Version.of(wanted)) else wanted


def lowest_version(cluster: EtcdCluster, seen: Observation) -> Version:
    """The version that the cluster as a whole has."""
    running = [Version.of(voice.version) for voice in seen.voices.values() if voice.version]
    return min(running, default=Version.of(cluster.spec.version))


def is_outdated(cluster: EtcdCluster, pod: PodSeen) -> bool:
    """Whether it is not what would be made now."""
    return pod.template != _template(cluster)


def is_to_go(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    """Whether a member's pod is not what would be made now, or its claim will not outlive it."""
    pod = seen.pods.get(name)
    return pod is not None and (is_outdated(cluster, pod) or seen.loses_data_with_its_pod(name))


def _template(cluster: EtcdCluster) -> str:
    made = cluster.copy()
    made.spec.version = version_to_run(cluster, "")
    return template_of(made)


def failed_rollout(cluster: EtcdCluster, seen: Observation) -> Plan | None:
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
            words = f"{name} does not serve with {wanted} ({pod.words or 'it is silent'}): back to {current}"
            return Plan("RolloutFailed", words, GiveUpVersion(wanted))
    return None


def _has_failed(seen: Observation, pod: PodSeen) -> bool:
    return pod.trouble in {"image", "crash", "disk"} or seen.silence(pod) >= _PATIENCE


def rollout(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """The next member whose pod is not what is asked for. Of two none can be done without: if there is to be a third, it
    comes first. None is ready while there is no space, and a larger quota is how it gets some.
    """
    old = [member for member in seen.members if is_to_go(cluster, seen, member.name)]
    if not old:
        return _refused(cluster, seen)
    if len(seen.voters) == _PAIR and len(seen.members) < cluster.spec.size:
        return None
    unready = [member.name for member in seen.members if not seen.pods[member.name].ready]
    if unready and not any(alarm == "NOSPACE" for _, alarm in seen.alarms):
        return wait("RollingOut", f"waiting for {', '.join(unready)} to be ready before the next")
    lowest = lowest_version(cluster, seen)
    if seen.agreed_version and not _have_agreed(seen.agreed_version, lowest):
        words = f"waiting for members to agree that all of them have {lowest.major}.{lowest.minor}"
        return wait("RollingOut", f"{words}: with the next version they would not start before")
    leader = seen.leader
    member = min(old, key=lambda each: (leader is not None and each.id == leader.id, -ordinal_of(each.name)))
    if not keeps_data(cluster):
        return _surge(cluster, seen, f"{member.name} is not as it is asked for now")
    if seen.loses_data_with_its_pod(member.name):
        return _surge(cluster, seen, f"{member.name} would lose its data with its pod, since its claim is ending")
    return _restart(cluster, seen, member)


def _have_agreed(said: str, lowest: Version) -> bool:
    """Before members agree on any version they say so in a word."""
    return said[:1].isdigit() and Version.of(said).minor >= lowest.minor


def _refused(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    why = why_not(lowest_version(cluster, seen), Version.of(cluster.spec.version)) if seen.voices else ""
    return stuck("RolloutRefused", why) if why else None


def _restart(cluster: EtcdCluster, seen: Observation, member: MemberSeen) -> Plan:
    leader = seen.leader
    others = [each for each in seen.healthy_voters if each.id != member.id]
    movable = lowest_version(cluster, seen).moves_leaders
    if leader is not None and leader.id == member.id and others and movable:
        heir = min(others, key=lambda each: ordinal_of(each.name))
        return Plan("RollingOut", f"{heir.name} leads while {member.name} is started anew", MoveLeader(leader, heir))
    return Plan("RollingOut", f"{member.name} is started anew, as it is asked for now", DeletePod(member.name))


def _surge(cluster: EtcdCluster, seen: Observation, why: str) -> Plan:
    return Plan("RollingOut", *joins(cluster, seen, why))


def joins(cluster: EtcdCluster, seen: Observation, words: str) -> tuple[str, AddMember]:
    """Room for one more member, with a name that nothing else has, and why in words."""
    name = member_name(cluster, seen.pods.keys() | seen.claims.keys() | seen.names | seen.others)
    learner = cluster.spec.learners and lowest_version(cluster, seen).has_learners
    return f"{words}: {name} joins, and {'learns first' if learner else 'votes at once'}", AddMember(name, learner)
