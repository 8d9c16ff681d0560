"""etcd's own alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import KeyspaceHash, MemberReport, Observation
from etcd_operator.plan.rollout import is_outdated
from etcd_operator.plan.steps import ClusterPlan, Compact, Defragment, Disarm, RemoveMember, stuck


def outliers(prints: Mapping[str, KeyspaceHash], voters: int) -> tuple[str, ...] | None:
    """Who differs from what most voters have; None if some differ, and no most of them agree.

    Those that have forgotten more of the past, or less, cannot be compared, and are not said to differ.
    """
    for right, count in Counter(prints.values()).most_common(1):
        if 2 * count > voters:
            odd = (name for name, each in prints.items() if each.compacted == right.compacted and each != right)
            return tuple(sorted(odd))
    pasts = {each.compacted for each in prints.values()}
    return () if len(pasts) == len(set(prints.values())) else None


def replace_diverged(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Whoever differs from most is replaced; where no most of them agree, only a person can say who is right."""
    odd = outliers(seen.fingerprints, len(seen.voters))
    if odd is None:
        said = ", ".join(f"{name} {each.hash:08x}" for name, each in sorted(seen.fingerprints.items()))
        return stuck("Diverged", f"members hold different data, and no most of them agree ({said}); restore a backup")
    for member in seen.members:
        if member.name not in odd:
            continue
        if not seen.is_whole_without(member):
            return stuck("Diverged", f"{member.name} has other data than most, and cannot be spared; restore a backup")
        return ClusterPlan("Diverged", f"{member.name} has other data than most: it is replaced", RemoveMember(member))
    return None


_DEFAULT_QUOTA: Final = 2 * 1024**3
_QUOTA: Final = "ETCD_QUOTA_BACKEND_BYTES"
_ROOM: Final = 0.9
_WORTH_IT: Final = 0.05
"""Of the quota: so much has to be won for it to be worth stopping a member for a while."""
_AGAIN: Final = 10.0
"""Space is known to be free a while after the past is forgotten."""


def replace_corrupt(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """A member with other data than the rest is replaced; but not on the word of one that may be wrong itself."""
    if not seen.accused:
        return None
    gone = sorted(seen.accused - {member.id for member in seen.members} - {0})
    if gone:
        return ClusterPlan("Alarmed", "the corrupt member is gone", Disarm(gone[0], "CORRUPT"))
    if not seen.is_clear_who_is_corrupt:
        return _unclear(seen)
    member = next(each for each in seen.members if each.id in seen.accused)
    return ClusterPlan("Alarmed", f"{member.name} has other data than the rest: it is replaced", RemoveMember(member))


def _unclear(seen: Observation) -> ClusterPlan | None:
    """Hashes of all voters can tell: who differs from most is replaced, and nobody is accused if all are alike."""
    revisions = {report.revision for report in seen.reports.values()}
    if len(seen.fingerprints) == len(seen.voters) and len({*seen.fingerprints.values()}) == len(revisions) == 1:
        return ClusterPlan("Alarmed", "all members hold the same data again", Disarm(min(seen.accused), "CORRUPT"))
    if outliers(seen.fingerprints, len(seen.voters)):
        return None
    named = ", ".join(member.name for member in seen.members if member.id in seen.accused) or "nobody by name"
    message = f"etcd says that members hold different data, and accuses {named}: most of them would have to be believed"
    return stuck("Alarmed", f"{message} to say who is wrong; restore a backup")


def free_space(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Forget the past, give its space back one by one, the leader last, and take the alarm back if that was enough.

    A larger quota is rolled out first. Before 3.4 a member does not say how much it uses: then the past is forgotten
    each time before space is given back.
    """
    full = [number for number, alarm in seen.alarms if alarm == "NOSPACE"]
    if not full:
        return None
    quota = _quota(cluster)
    sizes = {name: report for name, report in seen.reports.items() if name in seen.names}
    if all(_has_room(report, quota) for report in sizes.values()):
        old = any(is_outdated(cluster, pod) for pod in seen.pods.values())
        return None if old else ClusterPlan("Alarmed", "there is room again", Disarm(full[0], "NOSPACE"))
    wasteful = [name for name, report in sizes.items() if _is_wasteful(report, quota)]
    if wasteful:
        return _given_back(seen, wasteful)
    revision = max(report.revision for report in sizes.values())
    message = "no space is left: the past is forgotten; if that is not enough, raise spec.options.quotaBackendBytes"
    return ClusterPlan("Alarmed", message, Compact(revision), after=_AGAIN)


def _quota(cluster: EtcdCluster) -> int:
    """As it is set, in options or in etcd's own way."""
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
    message = f"{name} has no space left: what it does not use is given back"
    return ClusterPlan("Alarmed", message, step, after=0.0 if is_known else _AGAIN)
