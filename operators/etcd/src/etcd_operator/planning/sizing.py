"""More members, fewer members, larger claims."""

from __future__ import annotations

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import ordinal_of
from etcd_operator.observation import MemberSeen, Observation
from etcd_operator.planning.plan import Plan, wait
from etcd_operator.planning.rolling import is_to_go, joins, lowest_version
from etcd_operator.steps import GrowClaim, MoveLeader, RemoveMember

__all__ = ["all_healthy", "claims_grow", "fewer", "more"]


def fewer(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """The sick before the healthy, the outdated before the new, the highest number first, the leader last."""
    if len(seen.members) <= cluster.spec.size:
        return None
    victim = min(seen.members, key=lambda member: _worth(cluster, seen, member))
    words = f"{len(seen.members)} members, {cluster.spec.size} are asked for"
    if not seen.is_whole_without(victim):
        return wait("ScalingDown", f"{words}; {victim.name} cannot go: the others would be too few")
    leader = seen.leader
    if leader is not None and leader.id == victim.id and lowest_version(cluster, seen).moves_leaders:
        return _led_by_another(cluster, seen, leader, words)
    return Plan("ScalingDown", f"{words}: {victim.name} goes", RemoveMember(victim))


def _worth(cluster: EtcdCluster, seen: Observation, member: MemberSeen) -> tuple[bool, bool, bool, int]:
    is_new = member.name in seen.pods and not is_to_go(cluster, seen, member.name)
    leads = seen.leader is not None and seen.leader.id == member.id
    return (seen.stays(member), is_new, leads, -ordinal_of(member.name))


def _led_by_another(cluster: EtcdCluster, seen: Observation, leader: MemberSeen, words: str) -> Plan:
    others = [member for member in seen.healthy_voters if member.id != leader.id]
    heir = max(others, key=lambda member: _worth(cluster, seen, member))
    return Plan("ScalingDown", f"{words}: {heir.name} leads before {leader.name} goes", MoveLeader(leader, heir))


def all_healthy(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Nothing is changed by choice while a member is down, or about to be."""
    sick = [member.name for member in seen.members if not seen.stays(member)]
    if not sick:
        return None
    words = "; ".join(seen.pods[name].words for name in sick if name in seen.pods and seen.pods[name].words)
    return wait("Healing", f"waiting for {', '.join(sick)}{f' ({words})' if words else ''}")


def claims_grow(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """A claim that is smaller than what is asked for."""
    for name, claim in sorted(seen.claims.items()):
        if claim.small and not claim.ending:
            return Plan("Growing", f"the claim of {name} grows", GrowClaim(name))
    return None


def more(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """One at a time."""
    if len(seen.members) >= cluster.spec.size:
        return None
    words = f"{len(seen.members)} members, {cluster.spec.size} are asked for"
    return Plan("ScalingUp", *joins(cluster, seen, words))
