"""From nothing to a first member; and from all members to none that runs, and back."""

from __future__ import annotations

from urllib.parse import urlsplit

from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.manifests import MemberStart, member_name
from etcd_operator.observation import Observation, ObservedMember, ObservedPod, quorum
from etcd_operator.plan.rollout import all_secure, is_outdated, version_to_run
from etcd_operator.plan.steps import ClusterPlan, DeletePod, Remember, Restore, StartMember, done, stuck, wait


def identity_mismatch(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Members of different clusters under one name: whichever is wrong, only a person can say."""
    known = {f"{report.cluster:x}": name for name, report in seen.reports.items()}
    known |= {cluster.status.cluster_id: "the status"} if cluster.status.cluster_id else {}
    if len(known) < 2:
        return None
    said = ", ".join(f"{name} says {number}" for number, name in sorted(known.items(), key=lambda each: each[1]))
    return stuck("IdentityMismatch", f"members belong to different clusters: {said}; delete the pods that are wrong")


def stopped(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Size 0: no pod runs, and every claim is kept."""
    if cluster.spec.size:
        return None
    running = sorted(pod.name for pod in seen.pods.values() if not pod.ending)
    doomed = [name for name in running if seen.loses_data_with_its_pod(name)]
    voters = {member.name for member in seen.voters} or set(running)
    if doomed and len(voters - set(doomed)) < quorum(len(voters)):
        message = f"size is 0, but the claims of {', '.join(doomed)} are ending, and would take the data with them"
        return stuck("Asleep", f"{message}: with a size of 1 or more other members take their place first")
    if running:
        return ClusterPlan("Asleep", f"size is 0: {running[0]} is stopped, its data stays", DeletePod(running[0]))
    if seen.pods:
        return wait("Asleep", "pods are ending")
    return done("Asleep", f"size is 0: {len(seen.claims)} claims keep the data")


def form_from_snapshot(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """A cluster that is to begin with given data never begins without it, and begins with it once.

    Whose members have answered before has begun, whatever became of the restore that it began with: its identity may have
    been taken back by another one.
    """
    if cluster.status.cluster_id or cluster.spec.restore_from is None:
        return None
    if seen.kept.begun_from or cluster.status.current_version:
        if seen.reports or seen.pods or seen.claims or seen.kept.restoring:
            return None
        message = "nothing is left of the members, of which the first began with the snapshot of spec.restoreFrom"
        return stuck("Forming", f"{message}: make an EtcdRestore; to begin with that one again, make the cluster anew")
    if seen.kept.restoring:
        return wait("Forming", f"the cluster begins with a snapshot: {seen.kept.restoring}")
    return ClusterPlan("Forming", "the cluster begins with the snapshot of spec.restoreFrom", Restore("given"))


def form_cluster(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """The first member, until it has answered once and that is written down.

    What a restore has stopped is not started: its members would meet the one that has the snapshot. And where nothing is
    left of a restore that goes on, nothing begins without its data.
    """
    if cluster.status.cluster_id:
        return None
    if seen.reports:
        return _answered(cluster, seen)
    if seen.kept.emptying or (seen.kept.restoring and not seen.pods and not seen.claims):
        return wait("Forming", f"the cluster is being restored: {seen.kept.restoring}")
    if len(seen.pods.keys() | seen.claims.keys()) > 1:
        return None
    if seen.others:
        message = f"there is something of another cluster of this name: {', '.join(sorted(seen.others))}"
        return wait("Forming", f"{message}; unless it goes by itself, delete its pods and claims")
    return _seed(cluster, seen)


def _answered(cluster: EtcdCluster, seen: Observation) -> ClusterPlan:
    """An address may have been somebody else's before, or be by now: only a member of this cluster is believed."""
    own = next((member for member in seen.members if seen.is_healthy(member) and _is_own(cluster, member)), None)
    if own is None or not seen.agreed:
        return wait("Forming", f"waiting for {', '.join(sorted(seen.reports))} to answer as a member of this cluster")
    secured = cluster.spec.tls is not None and all_secure(cluster, seen)
    return ClusterPlan("Forming", "the first member answers", Remember(seen.reports[own.name].cluster, secured=secured))


def _is_own(cluster: EtcdCluster, member: ObservedMember) -> bool:
    host = urlsplit(member.peer_url).hostname or ""
    return host.startswith(f"{member.name}.{cluster.name}.{cluster.namespace}.svc")


def _seed(cluster: EtcdCluster, seen: Observation) -> ClusterPlan:
    name = next(iter(seen.pods.keys() | seen.claims.keys()), member_name(cluster, ()))
    pod = seen.pods.get(name)
    if pod is None:
        return _begun(cluster, seen, name)
    if not pod.ending and not pod.running and is_outdated(cluster, pod):
        return ClusterPlan("Forming", f"{name} is started anew, as it is asked for now", DeletePod(name))
    if pod.trouble == "disk" and not pod.ending:
        message = f"{name} does not start with what is left in its claim ({pod.message})"
        return stuck("Forming", f"{message}: make another EtcdRestore")
    return wait("Forming", _awaited(pod))


def _begun(cluster: EtcdCluster, seen: Observation, name: str) -> ClusterPlan:
    """A cluster that has served before a restore stopped it is not begun with as if it were new: what is left in a claim
    may be the snapshot, what was there before it, or nothing yet.
    """
    version = version_to_run(cluster, name)
    if not (seen.kept.was_restored and cluster.status.current_version):
        step = StartMember(name, MemberStart("seed"), version)
        return ClusterPlan("Forming", f"{name} is the first member of a new cluster", step)
    claim = seen.claims.get(name)
    if claim is not None and not claim.ending and not claim.lost:
        step = StartMember(name, MemberStart("return"), version)
        return ClusterPlan("Forming", f"{name} is started with what a restore has left in its claim", step)
    message = "a restore has stopped this cluster and is gone, and nothing is left of its members"
    ways = f"make another EtcdRestore; to begin with nothing, remove the annotation {GROUP}/restoring"
    return stuck("Forming", f"{message}: {ways}")


def _awaited(pod: ObservedPod) -> str:
    if pod.ending:
        return f"{pod.name} is ending"
    return f"waiting for {pod.name} to answer{f': {pod.message}' if pod.message else ''}"
