"""A snapshot before an upgrade: until it counts, members are seen to with the version that they have."""

from __future__ import annotations

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Observation
from etcd_operator.planning.plan import Plan, wait
from etcd_operator.planning.rolling import wanted_version
from etcd_operator.steps import BackUp
from etcd_operator.versions import Version, why_not

__all__ = ["awaits_snapshot", "held_back", "save_first"]


def awaits_snapshot(cluster: EtcdCluster, seen: Observation) -> bool:
    """Whether another version is asked for that no pod has yet, and there is a place for a snapshot but none in it."""
    current = cluster.status.current_version
    if not current or not seen.agreed or cluster.spec.paused or not cluster.spec.size:
        return False
    wanted = wanted_version(cluster).removeprefix("v")
    if Version.of(wanted) == Version.of(current) or why_not(Version.of(current), Version.of(wanted)):
        return False
    begun = any(pod.version == wanted for pod in seen.pods.values())
    return not begun and seen.kept.can_save and not seen.kept.saved


def held_back(cluster: EtcdCluster) -> EtcdCluster:
    """The cluster as if its version had not been changed."""
    held = cluster.copy()
    held.spec.version = cluster.status.current_version
    return held


def save_first(cluster: EtcdCluster, seen: Observation) -> Plan:
    """Asks for the snapshot, and waits for it."""
    words = f"before {cluster.spec.version} comes a snapshot"
    if seen.kept.saving:
        return wait("RollingOut", f"{words}: {seen.kept.saving}")
    return Plan("RollingOut", f"{words} of what {cluster.status.current_version} has", BackUp())
