"""Reports a cluster: its status and its metrics, always from the observation, never from intent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from prometheus_client import Counter, Gauge, Histogram

from etcd_operator.kinds import EtcdCluster, MembersStatus
from etcd_operator.manifests import CLIENT_PORT, labels_of
from etcd_operator.observation import Observation
from etcd_operator.plan import ClusterPlan
from etcd_operator.plan.alarms import outliers
from etcd_operator.versions import EtcdVersion
from navarch import Condition

STEPS: Final = Counter("etcd_operator_steps", "Steps that were taken, by their kind.", ["step"])
RECOVERY: Final = Histogram(
    "etcd_operator_recovery_seconds",
    "How long clusters were degraded.",
    buckets=(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800),
)
_MEMBERS: Final = Gauge(
    "etcd_operator_members", "Members of clusters, by their state.", ["namespace", "cluster", "state"]
)
_SILENCE: Final = timedelta(minutes=5)


class MemberCounts:
    """Exports the number of members per state and cluster; drops clusters that are no longer reconciled."""

    def __init__(self) -> None:
        self._looked: dict[tuple[str, str], tuple[datetime, frozenset[str]]] = {}

    def record(self, namespace: str, cluster: str, counts: Mapping[str, int], now: datetime) -> None:
        """Sets the counts of a cluster."""
        self._looked[namespace, cluster] = now, frozenset(counts)
        for state, count in counts.items():
            _MEMBERS.labels(namespace, cluster, state).set(count)

    def remove_deleted(self, now: datetime) -> None:
        """Removes the series of clusters that have not been reconciled for five minutes: they are deleted."""
        gone = {each: states for each, (looked, states) in self._looked.items() if now - looked > _SILENCE}
        for (namespace, cluster), states in gone.items():
            del self._looked[namespace, cluster]
            for state in states:
                _MEMBERS.remove(namespace, cluster, state)


_TROUBLED: Final = frozenset(
    {
        "AccessRefused",
        "Alarmed",
        "Diverged",
        "Healing",
        "IdentityMismatch",
        "QuorumLost",
        "Recovering",
        "RolloutFailed",
        "RolloutRefused",
        "SecretsWrong",
        "Unreachable",
        "Unsupported",
    }
)
_UNDER_WAY: Final = frozenset(
    {
        "Asleep",
        "Forming",
        "Growing",
        "Joining",
        "Recovering",
        "RollingOut",
        "ScalingDown",
        "ScalingUp",
        "Securing",
        "TidyingUp",
        "WakingUp",
    }
)


def report_status(cluster: EtcdCluster, seen: Observation, plan: ClusterPlan) -> None:
    """Sets the status from the observation and the plan."""
    status = cluster.status
    names = seen.names or {*status.members.ready, *status.members.unready}
    ready = _ready(seen, plan, names)
    new = [member.name for member in seen.members if member.learner or not member.started]
    joining = new if seen.names else status.members.joining
    status.members = MembersStatus(ready=ready, unready=sorted(names - set(ready)), joining=joining)
    status.size = len(names)
    status.ready = f"{len(ready)}/{cluster.spec.size}"
    status.phase, status.reason = _phase(cluster, plan)
    status.control_paused = cluster.spec.paused
    status.service_name, status.client_port = f"{cluster.name}-client", CLIENT_PORT
    status.selector = ",".join(f"{key}={value}" for key, value in sorted(labels_of(cluster).items()))
    status.leader = seen.leader.name if seen.leader else ""
    status.next_step = plan.message
    if seen.compared and outliers(seen.fingerprints, len(seen.voters)) == ():
        status.compared_at = seen.now.replace(microsecond=0)
    _versions(cluster, seen)
    _saved(cluster, seen)
    _conditions(cluster, seen, plan)


def _ready(seen: Observation, plan: ClusterPlan, names: Iterable[str]) -> list[str]:
    """Returns the members that serve; pod readiness decides where the operator cannot reach them."""
    if plan.reason == "Unreachable":
        return sorted(name for name in names if name in seen.pods and seen.pods[name].ready)
    return sorted(member.name for member in seen.voters if _serves(seen, member.name))


def _serves(seen: Observation, name: str) -> bool:
    pod = seen.pods.get(name)
    member = next(each for each in seen.members if each.name == name)
    return seen.agreed and pod is not None and pod.ready and seen.is_healthy(member)


def _phase(cluster: EtcdCluster, plan: ClusterPlan) -> tuple[Literal["", "Creating", "Running", "Failed"], str]:
    never_formed = plan.reason == "SecretsWrong" and not cluster.status.cluster_id
    if plan.stuck and (plan.reason in {"QuorumLost", "IdentityMismatch", "Unsupported"} or never_formed):
        return "Failed", plan.message
    return ("Running" if cluster.status.cluster_id else "Creating"), ""


def _versions(cluster: EtcdCluster, seen: Observation) -> None:
    status = cluster.status
    wanted = cluster.spec.version.removeprefix("v")
    running = [(EtcdVersion.of(report.version), name) for name, report in seen.reports.items() if report.version]
    if running:
        status.current_version = min((version, text == wanted, text) for version, text in _tagged(seen, running))[2]
    status.target_version = wanted if wanted != status.current_version else ""
    if status.failed_version and status.failed_generation != cluster.metadata.generation:
        status.failed_version, status.failed_generation = "", 0


def _tagged(seen: Observation, running: Sequence[tuple[EtcdVersion, str]]) -> Iterator[tuple[EtcdVersion, str]]:
    """Adds the image tag of the pod to each version: etcd itself does not report a suffix of the tag."""
    for version, name in running:
        asked = seen.pods[name].version if name in seen.pods else ""
        yield version, asked if asked and EtcdVersion.of(asked) == version else str(version)


def _saved(cluster: EtcdCluster, seen: Observation) -> None:
    kept, status = seen.kept, cluster.status
    if status.target_version and status.cluster_id:
        none = "none was taken: spec.backup and the operator name no destination, or beforeUpgrade is false"
        status.snapshot_before_upgrade = kept.saved or kept.saving or ("" if kept.can_save else none)


def _conditions(cluster: EtcdCluster, seen: Observation, plan: ClusterPlan) -> None:
    _set(cluster, seen, "Available", _available(seen, plan))
    moving = plan.reason in _UNDER_WAY and not (plan.reason == "Asleep" and plan.step is None)
    _set(cluster, seen, "Progressing", (moving, plan.reason, plan.message))
    _set(cluster, seen, "Degraded", _degraded(cluster, seen, plan))
    if seen.kept.scheduled is not None:
        _set(cluster, seen, "BackupReady", seen.kept.scheduled)
    else:
        cluster.status.conditions = [each for each in cluster.status.conditions if each.type != "BackupReady"]


def _available(seen: Observation, plan: ClusterPlan) -> tuple[bool | None, str, str]:
    if seen.agreed:
        healthy = sum(seen.is_healthy(member) for member in seen.voters)
        return True, "Serving", f"{healthy} of {len(seen.voters)} voters answer"
    if plan.reason == "Unreachable":
        return None, "Unreachable", plan.message
    return False, "Asleep" if plan.reason == "Asleep" else "NoQuorum", plan.message


def _degraded(cluster: EtcdCluster, seen: Observation, plan: ClusterPlan) -> tuple[bool, str, str]:
    sick = [member.name for member in seen.voters if not seen.is_healthy(member)]
    if plan.stuck or plan.reason in _TROUBLED:
        return True, plan.reason, plan.message
    if plan.reason == "Paused" and cluster.status.cluster_id and cluster.spec.size and not seen.agreed:
        return True, "NoQuorum", f"the cluster has no quorum; {plan.message}"
    if sick and plan.reason != "Asleep":
        return True, "MembersDown", f"{', '.join(sorted(sick))} do not serve"
    if cluster.status.failed_version:
        return (
            True,
            "RolloutFailed",
            f"{cluster.status.failed_version} failed to start; {_current(cluster)} keeps running",
        )
    if cluster.status.current_version and EtcdVersion.of(cluster.status.current_version).may_diverge:
        return (
            False,
            "VersionMayDiverge",
            f"members of {_current(cluster)} can diverge after a crash: upgrade",
        )
    if cluster.spec.size % 2 == 0 and cluster.spec.size:
        return False, "EvenSize", f"{cluster.spec.size} members tolerate no more failures than {cluster.spec.size - 1}"
    return False, "AsExpected", "all members are healthy"


def _current(cluster: EtcdCluster) -> str:
    return cluster.status.current_version


def _set(cluster: EtcdCluster, seen: Observation, kind: str, said: tuple[bool | None, str, str]) -> None:
    """Sets a condition from its status (None: Unknown), reason and message."""
    holds, reason, message = said
    cluster.status.set_condition(
        Condition(
            type=kind,
            status="Unknown" if holds is None else "True" if holds else "False",
            reason=reason,
            message=message,
            observed_generation=cluster.metadata.generation,
            last_transition_time=seen.now,
        )
    )
