"""From nothing to a first member; and from all members to none that runs, and back."""

from __future__ import annotations

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import Start, member_name, template_of
from etcd_operator.observation import Observation, PodSeen
from etcd_operator.planning.plan import Plan, done, stuck, wait
from etcd_operator.planning.securing import all_secure
from etcd_operator.steps import DeletePod, Remember, Restore, StartMember

__all__ = ["asleep", "forming", "from_snapshot", "identity"]


def identity(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Members of different clusters under one name: whichever is wrong, only a person can say."""
    known = {f"{voice.cluster:x}": name for name, voice in seen.voices.items()}
    known |= {cluster.status.cluster_id: "the status"} if cluster.status.cluster_id else {}
    if len(known) < 2:
        return None
    said = ", ".join(f"{name} says {number}" for number, name in sorted(known.items(), key=lambda each: each[1]))
    return stuck("IdentityMismatch", f"members belong to different clusters: {said}; delete the pods that are wrong")


def asleep(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Size 0: no pod runs, and every claim is kept."""
    if cluster.spec.size:
        return None
    running = sorted(pod.name for pod in seen.pods.values() if not pod.ending)
    if running:
        return Plan("Asleep", f"size is 0: {running[0]} is stopped, its data stays", DeletePod(running[0]))
    if seen.pods:
        return wait("Asleep", "pods are ending")
    return done("Asleep", f"size is 0: {len(seen.claims)} claims keep the data")


def from_snapshot(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """A cluster that is to begin with given data never begins without it."""
    if cluster.status.cluster_id or cluster.spec.restore_from is None:
        return None
    if seen.kept.begun_from:
        if seen.voices or seen.pods or seen.claims:
            return None
        return stuck(
            "Forming", "the member that began with the snapshot is gone: delete the cluster, and create it again"
        )
    if seen.kept.restoring:
        return wait("Forming", f"the cluster begins with a snapshot: {seen.kept.restoring}")
    return Plan("Forming", "the cluster begins with the snapshot of spec.restoreFrom", Restore("given"))


def forming(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """The first member, until it has answered once and that is written down."""
    if cluster.status.cluster_id:
        return None
    if seen.voices:
        number = next(iter(seen.voices.values())).cluster
        secured = cluster.spec.tls is not None and all_secure(cluster, seen)
        return Plan("Forming", "the first member answers", Remember(number, secured=secured))
    if len(seen.pods.keys() | seen.claims.keys()) > 1:
        return None
    return _seed(cluster, seen)


def _seed(cluster: EtcdCluster, seen: Observation) -> Plan:
    name = next(iter(seen.pods.keys() | seen.claims.keys()), member_name(cluster, ()))
    pod = seen.pods.get(name)
    if pod is None:
        step = StartMember(name, Start("seed"), cluster.spec.version)
        return Plan("Forming", f"{name} is the first member of a new cluster", step)
    if not pod.ending and not pod.running and pod.template != template_of(cluster):
        return Plan("Forming", f"{name} is started anew, as it is asked for now", DeletePod(name))
    return wait("Forming", _awaited(pod))


def _awaited(pod: PodSeen) -> str:
    if pod.ending:
        return f"{pod.name} is ending"
    return f"waiting for {pod.name} to answer{f': {pod.words}' if pod.words else ''}"
