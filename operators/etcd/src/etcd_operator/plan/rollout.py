"""Plans roll-outs: versions, pod changes, TLS and authentication; one member at a time, the leader last."""

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
"""The operator does not watch Secrets, and reads them again after so many seconds."""


def refuse_wrong_secrets(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Stops if a Secret is wrong, or if etcd cannot be probed with TLS: no member starts in plain text instead."""
    if seen.faults:
        return ClusterPlan("SecretsWrong", "; ".join(seen.faults), after=_SOON, stuck=True)
    if secret_names(cluster).server and not EtcdVersion.of(cluster.spec.version).has_metrics_port:
        message = f"etcd {cluster.spec.version} has no port for probes without a certificate"
        return stuck("Unsupported", f"{message}: set spec.version to 3.3.0 or later, or use no TLS for clients")
    return None


def refuse_unknown_operator(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Stops if etcd refuses the operator's login: no step could be executed."""
    if seen.auth != "refused":
        return None
    if cluster.spec.auth is None:
        return stuck(
            "AccessRefused", "etcd requires a password, but spec.auth is not set: set it, with root's password"
        )
    return stuck("AccessRefused", "etcd refuses the password of root: store the right one in the Secret of spec.auth")


def all_secure(cluster: EtcdCluster, seen: Observation) -> bool:
    """Reports whether all peer URLs use TLS as the spec asks."""
    return bool(seen.members) and not any(_is_plain(cluster, member) for member in seen.members)


def _is_plain(cluster: EtcdCluster, member: ObservedMember) -> bool:
    return bool(secret_names(cluster).peer) and not member.peer_url.startswith("https://")


def secure_peers(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Changes one peer URL after the other to https, once every pod serves plain text and TLS."""
    old = any(is_outdated(cluster, pod) for pod in seen.pods.values())
    if mode_of(cluster) != "both" or old:
        return None
    for member in seen.members:
        if _is_plain(cluster, member):
            return ClusterPlan("Securing", f"the peer URL of {member.name} changes to https", SecurePeer(member))
    return ClusterPlan("Securing", "all peer URLs use TLS: the members stop serving plain text", Secured())


def enable_auth(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Enables authentication, with root as the first user."""
    if seen.auth != "off":
        return None
    return ClusterPlan("Securing", "authentication is enabled: clients need a password", AskWho())


def awaits_snapshot(cluster: EtcdCluster, seen: Observation) -> bool:
    """Reports whether an upgrade has not begun and still needs its snapshot."""
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
    """Returns the cluster with its current version as spec.version."""
    held = cluster.copy()
    held.spec.version = cluster.status.current_version
    return held


def snapshot_first(cluster: EtcdCluster, seen: Observation) -> ClusterPlan:
    """Requests the snapshot before an upgrade, and waits for it."""
    message = f"the upgrade to {cluster.spec.version} waits for a snapshot"
    if seen.kept.saving:
        return wait("RollingOut", f"{message}: {seen.kept.saving}")
    return ClusterPlan("RollingOut", f"{message} of {cluster.status.current_version}", BackUp())


_PAIR: Final = 2
_PATIENCE: Final = 120.0
"""A member has so many seconds to serve with the new version."""


def wanted_version(cluster: EtcdCluster) -> str:
    """Returns spec.version, or the current version if spec.version has failed."""
    status = cluster.status
    given_up = status.failed_version and status.failed_generation == cluster.metadata.generation
    if given_up and status.failed_version == cluster.spec.version.removeprefix("v"):
        return status.current_version or cluster.spec.version
    return cluster.spec.version


def version_to_run(cluster: EtcdCluster, name: str) -> str:
    """Returns the version of a new pod: never one that the cluster cannot be upgraded to."""
    wanted = wanted_version(cluster)
    current = cluster.status.current_version
    return current if current and upgrade_refusal(EtcdVersion.of(current), EtcdVersion.of(wanted)) else wanted


def lowest_version(cluster: EtcdCluster, seen: Observation) -> EtcdVersion:
    """Returns the lowest version of the members that answer."""
    running = [EtcdVersion.of(report.version) for report in seen.reports.values() if report.version]
    return min(running, default=EtcdVersion.of(cluster.spec.version))


def is_outdated(cluster: EtcdCluster, pod: ObservedPod) -> bool:
    """Reports whether the pod differs from the one that the spec describes."""
    return pod.template != _template(cluster)


def is_outdated_or_doomed(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    """Reports whether a member's pod is outdated or its claim is terminating."""
    pod = seen.pods.get(name)
    return pod is not None and (is_outdated(cluster, pod) or seen.loses_data_with_its_pod(name))


def _template(cluster: EtcdCluster) -> str:
    made = cluster.copy()
    made.spec.version = version_to_run(cluster, "")
    return template_of(made)


def failed_rollout(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Gives up a version with which a member does not serve, while the old version still runs.

    Without a quorum it blames the new version only if there is no other member.
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
            message = f"{name} does not serve with {wanted} ({pod.message or 'it does not answer'}): the members return to {current}"
            return ClusterPlan("RolloutFailed", message, GiveUpVersion(wanted))
    return None


def _has_failed(seen: Observation, pod: ObservedPod) -> bool:
    return pod.trouble in {"image", "crash", "disk"} or seen.silence(pod) >= _PATIENCE


def rollout(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Recreates the next outdated pod. A cluster of two that is to have three grows first, because it can spare none.

    A NOSPACE alarm makes all pods unready, and does not stop the roll-out: it may bring a larger quota.
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
        message = f"waiting for the cluster version to become {lowest.major}.{lowest.minor}"
        return wait("RollingOut", f"{message}: until then members of the next version do not start")
    leader = seen.leader
    member = min(old, key=lambda each: (leader is not None and each.id == leader.id, -ordinal_of(each.name)))
    if not keeps_data(cluster):
        return _surge(cluster, seen, f"{member.name} differs from the spec")
    if seen.loses_data_with_its_pod(member.name):
        return _surge(
            cluster, seen, f"{member.name} would lose its data with its pod, because its claim is terminating"
        )
    return _restart(cluster, seen, member)


def _have_agreed(said: str, lowest: EtcdVersion) -> bool:
    """Reports whether the cluster version is decided: until then etcd reports a word."""
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
            "RollingOut", f"{heir.name} becomes leader before {member.name} is recreated", MoveLeader(leader, heir)
        )
    return ClusterPlan(
        "RollingOut", f"{member.name} differs from the spec: its pod is recreated", DeletePod(member.name)
    )


def _surge(cluster: EtcdCluster, seen: Observation, why: str) -> ClusterPlan:
    return ClusterPlan("RollingOut", *add_member(cluster, seen, why))


def add_member(cluster: EtcdCluster, seen: Observation, message: str) -> tuple[str, AddMember]:
    """Returns the message and the step that add a member with an unused name."""
    name = member_name(cluster, seen.pods.keys() | seen.claims.keys() | seen.names | seen.others)
    learner = cluster.spec.learners and lowest_version(cluster, seen).has_learners
    return f"{message}: {name} joins as a {'learner' if learner else 'voter'}", AddMember(name, learner)
