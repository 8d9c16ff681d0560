"""Plans the first member of a cluster, and stopping a cluster (size 0)."""

from __future__ import annotations

from urllib.parse import urlsplit

from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.manifests import MemberStart, member_name
from etcd_operator.observation import Observation, ObservedMember, ObservedPod, quorum
from etcd_operator.plan.rollout import all_secure, is_outdated, version_to_run
from etcd_operator.plan.steps import ClusterPlan, DeletePod, Remember, Restore, StartMember, done, stuck, wait


def identity_mismatch(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Refuses to act on members of different etcd clusters: a person has to decide which are wrong."""
    known = {f"{report.cluster:x}": name for name, report in seen.reports.items()}
    known |= {cluster.status.cluster_id: "the status"} if cluster.status.cluster_id else {}
    if len(known) < 2:
        return None
    said = ", ".join(f"{name} reports {number}" for number, name in sorted(known.items(), key=lambda each: each[1]))
    return stuck("IdentityMismatch", f"members belong to different etcd clusters: {said}; delete the wrong pods")


def stopped(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Stops all pods and keeps all claims if spec.size is 0."""
    if cluster.spec.size:
        return None
    running = sorted(pod.name for pod in seen.pods.values() if not pod.ending)
    doomed = [name for name in running if seen.loses_data_with_its_pod(name)]
    voters = {member.name for member in seen.voters} or set(running)
    if doomed and len(voters - set(doomed)) < quorum(len(voters)):
        message = (
            f"spec.size is 0, but the claims of {', '.join(doomed)} are terminating, and the data would be deleted"
        )
        return stuck("Asleep", f"{message}: set spec.size to 1 or more, so that new members replace them first")
    if running:
        return ClusterPlan(
            "Asleep", f"spec.size is 0: the pod {running[0]} is deleted, its claim stays", DeletePod(running[0])
        )
    if seen.pods:
        return wait("Asleep", "spec.size is 0: pods are terminating")
    return done("Asleep", f"spec.size is 0: {len(seen.claims)} claims keep the data")


def form_from_snapshot(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Starts a new cluster from the snapshot of spec.restoreFrom: never without it, and only once.

    A cluster whose members have answered before has started, even if its restore is deleted: another restore may have
    cleared its id.
    """
    if cluster.status.cluster_id or cluster.spec.restore_from is None:
        return None
    if seen.kept.begun_from or cluster.status.current_version:
        if seen.reports or seen.pods or seen.claims or seen.kept.restoring:
            return None
        message = "all members are lost, and the first one had started from the snapshot of spec.restoreFrom"
        return stuck(
            "Forming", f"{message}: create an EtcdRestore, or recreate the cluster to start from that snapshot again"
        )
    if seen.kept.restoring:
        return wait("Forming", f"the cluster starts from a snapshot: {seen.kept.restoring}")
    return ClusterPlan("Forming", "the cluster starts from the snapshot of spec.restoreFrom", Restore("given"))


def form_cluster(cluster: EtcdCluster, seen: Observation) -> ClusterPlan | None:
    """Creates the first member, and waits until it has answered and the status records that.

    It starts no member that a restore has stopped: it would meet the restored one. While a restore runs and nothing is
    left of the cluster, it creates no empty member.
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
        message = f"pods or claims of another cluster of this name exist: {', '.join(sorted(seen.others))}"
        return wait("Forming", f"{message}; if they are not being deleted, delete them")
    return _seed(cluster, seen)


def _answered(cluster: EtcdCluster, seen: Observation) -> ClusterPlan:
    """Records the cluster id if a member of this cluster answers: another cluster may use the pod's address."""
    own = next((member for member in seen.members if seen.is_healthy(member) and _is_own(cluster, member)), None)
    if own is None or not seen.agreed:
        return wait("Forming", f"waiting for {', '.join(sorted(seen.reports))} to answer as a member of this cluster")
    secured = cluster.spec.tls is not None and all_secure(cluster, seen)
    return ClusterPlan(
        "Forming",
        "the first member answers: the status records the cluster id",
        Remember(seen.reports[own.name].cluster, secured=secured),
    )


def _is_own(cluster: EtcdCluster, member: ObservedMember) -> bool:
    host = urlsplit(member.peer_url).hostname or ""
    return host.startswith(f"{member.name}.{cluster.name}.{cluster.namespace}.svc")


def _seed(cluster: EtcdCluster, seen: Observation) -> ClusterPlan:
    name = next(iter(seen.pods.keys() | seen.claims.keys()), member_name(cluster, ()))
    pod = seen.pods.get(name)
    if pod is None:
        return _begun(cluster, seen, name)
    if not pod.ending and not pod.running and is_outdated(cluster, pod):
        return ClusterPlan("Forming", f"the pod {name} differs from the spec: it is recreated", DeletePod(name))
    if pod.trouble == "disk" and not pod.ending:
        message = f"{name} does not start with the data of its claim ({pod.message})"
        return stuck("Forming", f"{message}: create another EtcdRestore")
    return wait("Forming", _awaited(pod))


def _begun(cluster: EtcdCluster, seen: Observation, name: str) -> ClusterPlan:
    """Creates the first pod. A cluster that served before a restore stopped it never starts as a new one: its claim may
    hold the snapshot, the data before it, or nothing yet.
    """
    version = version_to_run(cluster, name)
    if not (seen.kept.was_restored and cluster.status.current_version):
        step = StartMember(name, MemberStart("seed"), version)
        return ClusterPlan("Forming", f"{name} is created as the first member of a new cluster", step)
    claim = seen.claims.get(name)
    if claim is not None and not claim.ending and not claim.lost:
        step = StartMember(name, MemberStart("return"), version)
        return ClusterPlan("Forming", f"{name} is started with the data that a restore left in its claim", step)
    message = "a restore that stopped this cluster is deleted, and all members are lost"
    ways = f"create another EtcdRestore; to start with an empty cluster, remove the annotation {GROUP}/restoring"
    return stuck("Forming", f"{message}: {ways}")


def _awaited(pod: ObservedPod) -> str:
    if pod.ending:
        return f"{pod.name} is terminating"
    return f"waiting for {pod.name} to answer{f': {pod.message}' if pod.message else ''}"
