"""Plans for etcd's alarms and for members whose data diverged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import KeyspaceHash, MemberReport, Observation
from etcd_operator.plan.rollout import is_outdated
from etcd_operator.plan.steps import ClusterPlan, Compact, Defragment, Disarm, RemoveMember, stuck


def outliers(prints: Mapping[str, KeyspaceHash], voters: int) -> tuple[str, ...] | None:
    """Returns the members that differ from the majority; None if members differ and no majority agrees.

    Members with another compacted revision cannot be compared, and do not count as different.
    """
    for right, count in Counter(prints.values()).most_common(1):
        if 2 * count > voters:
            odd = (name for name, each in prints.items() if each.compacted == right.compacted and each != right)
            return tuple(sorted(odd))
    pasts = {each.compacted for each in prints.values()}
    return () if len(pasts) == len(set(prints.values())) else None


def replace_diverged(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Replaces a member that differs from the majority; without a majority a person has to decide."""
    odd = outliers(seen.fingerprints, len(seen.voters))
    if odd is None:
        said = ", ".join(f"{name} {each.hash:08x}" for name, each in sorted(seen.fingerprints.items()))
        return stuck("Diverged", f"members hold different data and no majority agrees ({said}); restore a backup")
    for member in seen.members:
        if member.name not in odd:
            continue
        if not seen.is_whole_without(member):
            return stuck(
                "Diverged",
                f"{member.name} differs from the majority, but without it there is no quorum; restore a backup",
            )
        return ClusterPlan(
            "Diverged", f"{member.name} differs from the majority: the operator replaces it", RemoveMember(member)
        )
    return None


_DEFAULT_QUOTA: Final = 2 * 1024**3
_QUOTA: Final = "ETCD_QUOTA_BACKEND_BYTES"
_ROOM: Final = 0.9
_WORTH_IT: Final = 0.05
"""The share of the quota that a defragmentation must free, because it stops the member for a while."""
_AGAIN: Final = 10.0
"""The delay after a compaction until etcd reports the freed space."""


def replace_corrupt(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Replaces a member with a CORRUPT alarm, if a majority has none: the member that raised it may be wrong itself."""
    if not seen.accused:
        return None
    gone = sorted(seen.accused - {member.id for member in seen.members} - {0})
    if gone:
        return ClusterPlan(
            "Alarmed", "the corrupt member is removed: its alarm is disarmed", Disarm(gone[0], "CORRUPT")
        )
    if not seen.is_clear_who_is_corrupt:
        return _unclear(seen)
    member = next(each for each in seen.members if each.id in seen.accused)
    return ClusterPlan("Alarmed", f"{member.name} has a CORRUPT alarm: the operator replaces it", RemoveMember(member))


def _unclear(seen: Observation) -> ClusterPlan | None:
    """Decides by the hashes of all voters: disarms the alarm if they are equal, and leaves outliers to `replace_diverged`."""
    revisions = {report.revision for report in seen.reports.values()}
    if len(seen.fingerprints) == len(seen.voters) and len({*seen.fingerprints.values()}) == len(revisions) == 1:
        return ClusterPlan(
            "Alarmed",
            "all members hold the same data again: the alarm is disarmed",
            Disarm(min(seen.accused), "CORRUPT"),
        )
    if outliers(seen.fingerprints, len(seen.voters)):
        return None
    named = ", ".join(member.name for member in seen.members if member.id in seen.accused) or "an unknown member"
    message = f"etcd raised a CORRUPT alarm for {named}, but a majority of members without an alarm is needed"
    return stuck("Alarmed", f"{message} to identify the corrupt one; restore a backup")


def free_space(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Compacts, defragments one member after the other (the leader last), and disarms NOSPACE if that freed enough.

    A larger quota is rolled out first. etcd before 3.4 does not report its used space: each defragmentation then follows
    a compaction.
    """
    full = [number for number, alarm in seen.alarms if alarm == "NOSPACE"]
    if not full:
        return None
    quota = _quota(cluster)
    sizes = {name: report for name, report in seen.reports.items() if name in seen.names}
    if all(_has_room(report, quota) for report in sizes.values()):
        old = any(is_outdated(cluster, pod) for pod in seen.pods.values())
        return (
            None
            if old
            else ClusterPlan(
                "Alarmed", "the database has space again: the alarm is disarmed", Disarm(full[0], "NOSPACE")
            )
        )
    wasteful = [name for name, report in sizes.items() if _is_wasteful(report, quota)]
    if wasteful:
        return _given_back(seen, wasteful)
    revision = max(report.revision for report in sizes.values())
    message = (
        "the database is full: the operator compacts it; if that is not enough, raise spec.options.quotaBackendBytes"
    )
    return ClusterPlan("Alarmed", message, Compact(revision), after=_AGAIN)


def _quota(cluster: EtcdCluster) -> int:
    """Returns the quota from spec.options, from etcd's variable, or etcd's default."""
    options = cluster.spec.options.quota_backend_bytes if cluster.spec.options else None
    given = {each.name: each.value or "" for each in (cluster.spec.pod.etcd_env if cluster.spec.pod else ())}
    variable = given.get(_QUOTA, "")
    return options or (int(variable) if variable.isdecimal() else 0) or _DEFAULT_QUOTA


def _is_wasteful(report: MemberReport, quota: int) -> bool:
    won = report.size - report.in_use
    return report.in_use < _ROOM * quota <= report.size and won >= _WORTH_IT * quota


def _has_room(report: MemberReport, quota: int) -> bool:
    return report.size < _ROOM * quota or (report.in_use < _ROOM * quota and not _is_wasteful(report, quota))


def _given_back(seen: Observation, wasteful: list[str]) -> ClusterPlan:
    leader = seen.leader
    name = min(wasteful, key=lambda each: (leader is not None and leader.name == each, each))
    is_known = seen.reports[name].in_use > 0
    step = Defragment(name, forget=0 if is_known else seen.reports[name].revision)
    message = f"the database of {name} is full: the operator defragments it"
    return ClusterPlan("Alarmed", message, step, after=0.0 if is_known else _AGAIN)
