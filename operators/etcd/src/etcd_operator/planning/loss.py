"""No quorum: what comes back by itself, and what does not."""

from __future__ import annotations

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import Start, keeps_data, peer_url
from etcd_operator.observation import MemberSeen, Observation, quorum
from etcd_operator.planning.plan import Plan, stuck, wait
from etcd_operator.planning.rolling import version_to_run
from etcd_operator.steps import DeletePod, StartMember

__all__ = ["has_data", "start_again", "without_quorum"]


def without_quorum(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Starts what can be started; goes on from a survivor only where that is allowed, and nobody else can come back."""
    if seen.agreed:
        return None
    voters = seen.voters or tuple(MemberSeen(id=0, name=name) for name in sorted(seen.pods.keys() | seen.claims.keys()))
    for member in seen.members or voters:
        if member.name not in seen.pods and (not member.started or has_data(cluster, seen, member.name)):
            return start_again(cluster, seen, member)
    able = [member for member in voters if not member.started or has_data(cluster, seen, member.name)]
    if voters and len(able) >= quorum(len(voters)):
        silent = ", ".join(member.name for member in voters if not seen.is_healthy(member))
        return wait("QuorumLost", f"there is no quorum, but enough members have their data: waiting for {silent}")
    return _lost_for_good(cluster, seen, [member.name for member in able if member.started], len(voters))


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
    peers = tuple((each.name, peer_url(cluster, each.name)) for each in seen.members)
    step = StartMember(member.name, Start("join", peers), version_to_run(cluster, member.name))
    return Plan("Joining", f"{member.name} is a member and has not started yet", step)


def _lost_for_good(cluster: EtcdCluster, seen: Observation, able: list[str], voters: int) -> Plan:
    story = f"the quorum is lost for good: of {voters} voters {voters - len(able)} have lost their data"
    if not able:
        return stuck("QuorumLost", f"{story}; restore a backup: see EtcdRestore")
    if not keeps_data(cluster):
        return stuck(
            "QuorumLost", f"{story}, and {able[0]} would lose its own if it was restarted; {_snapshot(able[0])}"
        )
    if not cluster.spec.healing.force_new_cluster:
        return stuck("QuorumLost", f"{story}; to go on from what {' or '.join(able)} has: {_command(cluster)}")
    return _recover(cluster, seen, able, story)


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


def _command(cluster: EtcdCluster) -> str:
    change = '{"spec":{"healing":{"forceNewCluster":true}}}'
    return f"kubectl patch etcd {cluster.name} -n {cluster.namespace} --type merge -p '{change}'"


def _snapshot(name: str) -> str:
    return f"take its database out, and restore it: kubectl cp {name}:/var/etcd/data/member/snap/db ./db"
