"""No quorum: what comes back by itself, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import Start, keeps_data
from etcd_operator.observation import MemberSeen, Observation, quorum
from etcd_operator.planning.plan import Plan, stuck, wait
from etcd_operator.planning.rolling import version_to_run
from etcd_operator.steps import DeletePod, Restore, StartMember

__all__ = ["has_data", "start_again", "without_quorum"]

_DATABASE: Final = "/var/etcd/data/member/snap/db"


def without_quorum(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Starts what can be started; goes on from a survivor only where that is allowed, and nobody else can come back."""
    if seen.agreed:
        return None
    voters = seen.voters or _remembered(cluster, seen)
    able = [member for member in voters if not member.started or has_data(cluster, seen, member.name)]
    names = [member.name for member in able if member.started]
    lost = len(able) < quorum(len(voters))
    if lost and names and cluster.spec.healing.force_new_cluster and keeps_data(cluster):
        return _recover(cluster, seen, names, _story(able, voters))
    for member in [*able, *(each for each in seen.members if each.learner)]:
        if member.name not in seen.pods and (not member.started or has_data(cluster, seen, member.name)):
            return start_again(cluster, seen, member)
    if lost or not voters:
        return _gone(cluster, seen, names, _story(able, voters))
    silent = ", ".join(member.name for member in voters if not seen.is_healthy(member))
    return wait("QuorumLost", f"there is no quorum, but enough members have their data: waiting for {silent}")


def _remembered(cluster: EtcdCluster, seen: Observation) -> tuple[MemberSeen, ...]:
    """Who the members were when somebody last said so."""
    known = cluster.status.members
    names = {*known.ready, *known.unready} or seen.pods.keys() | seen.claims.keys()
    return tuple(MemberSeen(id=0, name=name) for name in sorted(names))


def _story(able: Sequence[MemberSeen], voters: Sequence[MemberSeen]) -> str:
    return f"the quorum is lost for good: of {len(voters)} voters {len(voters) - len(able)} have lost their data"


def _gone(cluster: EtcdCluster, seen: Observation, able: list[str], story: str) -> Plan:
    """The newest backup takes the place of what is lost, where that is allowed. Claims that are left keep what they have."""
    kept = seen.kept
    if not cluster.spec.healing.restore_from_backup or not kept.newest:
        return stuck("QuorumLost", f"{story}; {_remedy(cluster, able, kept.newest)}")
    if kept.restoring:
        return wait("Recovering", f"{story}; {kept.restoring}")
    step = Restore("newest", safely=bool(able) and not keeps_data(cluster))
    return Plan("Recovering", f"{story}; the cluster goes back to {kept.newest}", step)


def _remedy(cluster: EtcdCluster, able: list[str], newest: str) -> str:
    ways = []
    if able and keeps_data(cluster):
        ways.append(f"to go on from what {' or '.join(able)} has: {_command(cluster, 'forceNewCluster')}")
    elif able:
        ways.append(f"take the database of {able[0]} out, and restore it: kubectl cp {able[0]}:{_DATABASE} ./db")
    if newest:
        ways.append(f"to go back to {newest}: {_command(cluster, 'restoreFromBackup')}")
    return "; ".join(ways) or "no backup of it is known here: restore one with an EtcdRestore"


def _command(cluster: EtcdCluster, permission: str) -> str:
    change = f'{{"spec":{{"healing":{{"{permission}":true}}}}}}'
    return f"kubectl patch etcd {cluster.name} -n {cluster.namespace} --type merge -p '{change}'"


def has_data(cluster: EtcdCluster, seen: Observation, name: str) -> bool:
    """Whether a member that has started can be counted on to start again."""
    pod, claim = seen.pods.get(name), seen.claims.get(name)
    if pod is not None and pod.trouble == "disk":
        return False
    if keeps_data(cluster):
        return claim is not None and not claim.lost and not claim.ending
    return pod is not None and not pod.ending


def start_again(cluster: EtcdCluster, seen: Observation, member: MemberSeen) -> Plan:
    """The pod of a member: with its data, or to join for the first time."""
    if member.started:
        step = StartMember(member.name, Start("return"), version_to_run(cluster, member.name))
        return Plan("Healing", f"{member.name} has no pod, but its data: it is started again", step)
    peers = tuple((each.name, each.peer_url) for each in seen.members)
    step = StartMember(member.name, Start("join", peers), version_to_run(cluster, member.name))
    return Plan("Joining", f"{member.name} is a member and has not started yet", step)


def _recover(cluster: EtcdCluster, seen: Observation, able: list[str], story: str) -> Plan:
    survivor = _knows_most(seen, able)
    if survivor is None:
        return stuck(
            "QuorumLost", f"{story}; which of {', '.join(able)} knows most cannot be told while they are silent"
        )
    pod = seen.pods.get(survivor)
    if pod is None:
        step = StartMember(survivor, Start("survivor"), version_to_run(cluster, survivor))
        return Plan("Recovering", f"{story}; {survivor} goes on alone with what it has", step)
    if pod.forced or pod.ending:
        return wait("Recovering", f"waiting for {survivor} to go on alone")
    return Plan(
        "Recovering",
        f"{story}; {survivor} knows most, and is started again as a cluster of its own",
        DeletePod(survivor),
    )


def _knows_most(seen: Observation, able: list[str]) -> str | None:
    forced = next((name for name in able if name in seen.pods and seen.pods[name].forced), None)
    if forced or len(able) == 1:
        return forced or able[0]
    if any(name not in seen.voices for name in able):
        return None
    return max(able, key=lambda name: seen.voices[name].index)
