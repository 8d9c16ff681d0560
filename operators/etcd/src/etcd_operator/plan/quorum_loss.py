"""Plans for a cluster without a quorum: wait, restart members, or recover from a survivor or a backup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import MemberStart, keeps_data
from etcd_operator.observation import Observation, ObservedMember, quorum
from etcd_operator.plan.rollout import version_to_run
from etcd_operator.plan.steps import ChooseSurvivor, ClusterPlan, DeletePod, Restore, StartMember, stuck, wait

_DATABASE: Final = "/var/etcd/data/member/snap/db"
_TRIES: Final = 3
_SURE: Final = 60.0
"""A member's disk counts as lost after so many restarts and so many seconds."""
_RETRY: Final = 3.0


def without_quorum(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Restarts members that have data; recovers from one survivor only if the spec allows it and no quorum can return."""
    if seen.agreed:
        return None
    known = seen.members or _remembered(cluster, seen)
    voters = [member for member in known if not member.learner]
    able = [member for member in voters if not member.started or _may_return(cluster, seen, member.name)]
    names = [member.name for member in able if member.started]
    chosen = next((name for name in names if name in seen.claims and seen.claims[name].chosen), None)
    if chosen is not None:
        is_lost = len(able) < quorum(len(voters))
        return _alone(cluster, seen, chosen, _story(able, voters)) if is_lost else _not_alone(seen, chosen)
    learners = [member for member in known if member.learner]
    start = _started(cluster, seen, [*able, *learners])
    if start is not None or len(able) >= quorum(len(voters)):
        return start or _awaited(seen, voters)
    heard = [*names, *(member.name for member in learners if _may_return(cluster, seen, member.name))]
    return _hear_first(cluster, seen, heard) or _recover(cluster, seen, names, _story(able, voters))


def _started(cluster: EtcdCluster, seen: Observation, members: Sequence[ObservedMember]) -> ClusterPlan | None:
    """Starts the next member that can start; recreates a pod whose member has not started and lacks the flags to join."""
    for member in members:
        pod = seen.pods.get(member.name)
        if pod is None and (not member.started or has_data(cluster, seen, member.name)):
            return start_again(cluster, seen, member)
        if pod is not None and not member.started and not pod.first and not pod.ending:
            return ClusterPlan(
                "Joining", f"{member.name} has not started yet: its pod is recreated to join", DeletePod(member.name)
            )
    return None


def _awaited(seen: Observation, voters: Sequence[ObservedMember]) -> ClusterPlan:
    """Waits for the quorum. A ready pod belongs to a quorum, so if no member answers, the operator may be cut off."""
    ready = [member.name for member in voters if member.name in seen.pods and seen.pods[member.name].ready]
    if not seen.reports and ready:
        message = f"no member answers the operator, although {', '.join(ready)} are ready: the network may block it"
        return wait("Unreachable", message, after=_RETRY)
    silent = ", ".join(member.name for member in voters if not seen.is_healthy(member))
    return wait("QuorumLost", f"the cluster has no quorum, but enough members have their data: waiting for {silent}")


def _hear_first(cluster: EtcdCluster, seen: Observation, able: list[str]) -> ClusterPlan | None:
    """Waits until the members with data had time to answer: only they know for certain who votes."""
    led = [name for name, report in sorted(seen.reports.items()) if report.leader]
    early = led or [name for name in able if not _had_time_to_answer(cluster, seen, name)]
    if not early:
        return None
    return wait("QuorumLost", f"most members seem to have lost their data: waiting for {', '.join(early)} to answer")


def _had_time_to_answer(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    pod = seen.pods.get(name)
    if name in seen.reports or pod is None:
        return name in seen.reports
    tried = pod.running or pod.trouble in {"crash", "disk"}
    return tried and seen.silence(pod) >= cluster.spec.healing.replace_after_seconds


def _recover(cluster: EtcdCluster, seen: Observation, able: list[str], story: str) -> ClusterPlan:
    if able and cluster.spec.healing.force_new_cluster and keeps_data(cluster):
        return _choose(seen, able, story)
    return _gone(cluster, seen, able, story)


def _remembered(cluster: EtcdCluster, seen: Observation) -> tuple[ObservedMember, ...]:
    """Returns the last known members from the status. Those that were joining may vote by now, or have no data yet."""
    known = cluster.status.members
    names = {*known.ready, *known.unready} or {*seen.pods, *seen.claims}
    joining = {*known.joining} & {*known.unready}
    return tuple(ObservedMember(id=0, name=name, learner=name in joining) for name in sorted(names))


def _story(able: Sequence[ObservedMember], voters: Sequence[ObservedMember]) -> str:
    return f"the quorum is lost for good: {len(voters) - len(able)} of {len(voters)} voters have lost their data"


def _gone(cluster: EtcdCluster, seen: Observation, able: list[str], story: str) -> ClusterPlan:
    """Restores the newest backup if the spec allows it; a remaining claim keeps its old data beside the restored."""
    kept = seen.kept
    if not cluster.spec.healing.restore_from_backup or not kept.newest:
        return stuck("QuorumLost", f"{story}; {_remedy(cluster, able, kept.newest)}")
    if kept.restoring:
        return wait("Recovering", f"{story}; {kept.restoring}")
    step = Restore("newest", safely=bool(able) and not keeps_data(cluster))
    return ClusterPlan("Recovering", f"{story}; the operator restores {kept.newest}", step)


def _remedy(cluster: EtcdCluster, able: list[str], newest: str) -> str:
    ways = []
    if able and keeps_data(cluster):
        ways.append(f"to continue with the data of {' or '.join(able)}: {_command(cluster, 'forceNewCluster')}")
    elif able:
        ways.append(f"copy the database of {able[0]} and restore it: kubectl cp {able[0]}:{_DATABASE} ./db")
    if newest:
        ways.append(f"to restore {newest}: {_command(cluster, 'restoreFromBackup')}")
    return "; ".join(ways) or "the operator knows no backup of it: create an EtcdRestore"


def _command(cluster: EtcdCluster, permission: str) -> str:
    change = f'{{"spec":{{"healing":{{"{permission}":true}}}}}}'
    return f"kubectl patch etcd {cluster.name} -n {cluster.namespace} --type merge -p '{change}'"


def has_data(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    """Reports whether a member that has started can start again with its data."""
    pod = seen.pods.get(name)
    return _is_kept(cluster, seen, name) and not (pod is not None and pod.trouble == "disk")


def _may_return(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    """Reports the same without a quorum, where a failing disk gets more attempts."""
    pod = seen.pods.get(name)
    fails = pod is not None and pod.trouble == "disk" and pod.restarts >= _TRIES
    return _is_kept(cluster, seen, name) and not (fails and seen.silence(seen.pods[name]) >= _SURE)


def _is_kept(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    """Reports whether the member's volume exists; it does as long as its pod runs."""
    pod, claim = seen.pods.get(name), seen.claims.get(name)
    runs = pod is not None and not pod.ending
    if not keeps_data(cluster) or (runs and name in seen.reports):
        return runs
    return claim is not None and not claim.lost and (runs or not claim.ending)


def start_again(cluster: EtcdCluster, seen: Observation, member: ObservedMember) -> ClusterPlan:
    """Creates the pod of a member: with its data, or to join for the first time."""
    if member.started:
        step = StartMember(member.name, MemberStart("return"), version_to_run(cluster, member.name))
        return ClusterPlan("Healing", f"{member.name} has data but no pod: its pod is created", step)
    peers = tuple((each.name, each.peer_url) for each in seen.members)
    step = StartMember(member.name, MemberStart("join", peers), version_to_run(cluster, member.name))
    return ClusterPlan(
        "Joining", f"{member.name} is in the member list and has not started yet: its pod is created", step
    )


def _choose(seen: Observation, able: list[str], story: str) -> ClusterPlan:
    """Chooses the survivor with the highest raft index; its claim records that before its pod is stopped."""
    if len(able) > 1 and any(name not in seen.reports for name in able):
        return stuck(
            "QuorumLost",
            f"{story}; the operator cannot tell which of {', '.join(able)} has the newest data until they answer",
        )
    survivor = max(able, key=lambda name: seen.reports[name].index) if len(able) > 1 else able[0]
    message = f"{story}; {survivor} has the newest data of the rest: it becomes the only member"
    return ClusterPlan("Recovering", message, ChooseSurvivor(survivor))


def _not_alone(seen: Observation, chosen: str) -> ClusterPlan:
    """Reverts the choice of a survivor: enough other members have returned."""
    pod = seen.pods.get(chosen)
    if pod is not None and pod.forced and not pod.ending:
        return ClusterPlan(
            "Recovering", f"enough members have their data: {chosen} is restarted as one of them", DeletePod(chosen)
        )
    return ClusterPlan(
        "Recovering",
        f"enough members have their data: the claim {chosen} loses its survivor annotation",
        ChooseSurvivor(chosen, chosen=False),
    )


def _alone(cluster: EtcdCluster, seen: Observation, survivor: str, story: str) -> ClusterPlan:
    pod = seen.pods.get(survivor)
    if pod is None:
        step = StartMember(survivor, MemberStart("survivor"), version_to_run(cluster, survivor))
        return ClusterPlan("Recovering", f"{story}; {survivor} starts as the only member, with its data", step)
    if pod.forced or pod.ending:
        return wait("Recovering", f"waiting for {survivor} to start as the only member")
    return ClusterPlan("Recovering", f"{story}; {survivor} is restarted as the only member", DeletePod(survivor))
