"""Members that hold other data than the rest, though they say nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Fingerprint, Observation
from etcd_operator.planning.plan import Plan, stuck
from etcd_operator.steps import RemoveMember

__all__ = ["differing", "diverged"]


def differing(prints: Mapping[str, Fingerprint], voters: int) -> tuple[str, ...] | None:
    """Who differs from what most voters have; None if some differ, and no most of them agree.

    Those that have forgotten more of the past, or less, cannot be compared, and are not said to differ.
    """
    for right, count in Counter(prints.values()).most_common(1):
        if 2 * count > voters:
            odd = (name for name, each in prints.items() if each.compacted == right.compacted and each != right)
            return tuple(sorted(odd))
    pasts = {each.compacted for each in prints.values()}
    return () if len(pasts) == len(set(prints.values())) else None


def diverged(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Whoever differs from most is replaced; where no most of them agree, only a person can say who is right."""
    odd = differing(seen.fingerprints, len(seen.voters))
    if odd is None:
        said = ", ".join(f"{name} {each.hash:08x}" for name, each in sorted(seen.fingerprints.items()))
        return stuck("Diverged", f"members hold different data, and no most of them agree ({said}); restore a backup")
    for member in seen.members:
        if member.name not in odd:
            continue
        if not seen.is_whole_without(member):
            return stuck("Diverged", f"{member.name} has other data than most, and cannot be spared; restore a backup")
        return Plan("Diverged", f"{member.name} has other data than most: it is replaced", RemoveMember(member))
    return None
