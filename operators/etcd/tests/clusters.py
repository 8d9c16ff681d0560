"""Clusters of etcd whose members are processes of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from etcd_operator.kinds import EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, MemberStorage, PodPolicy
from navarch.api import OwnerReference, Quantity
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, PodSecurityContext
from navarch.testing import Cluster
from workload import is_ready

T = TypeVar("T", Pod, PersistentVolumeClaim)
NAME = "example"
SECONDS = 120.0


def example(size: int, **fields: Any) -> EtcdCluster:
    """A cluster with claims, of the etcd that is there."""
    spec = EtcdClusterSpec(
        **{"size": size, "version": "3.5.1", "storage": MemberStorage(size=Quantity("1Gi")), **fields}
    )
    return EtcdCluster(name=NAME, spec=spec)


def of_this_user(size: int, **fields: Any) -> EtcdCluster:
    """The same, whose pods run as whoever runs the tests: nobody else need be able to run this machine's Python."""
    return example(size, pod=PodPolicy(security_context=PodSecurityContext()), **fields)


def owned_by(owner: EtcdCluster, made: T) -> T:
    """The same, as something of that cluster."""
    reference = OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.metadata.uid or ""
    )
    made.metadata.owner_references = [reference]
    return made


async def serves(cluster: Cluster, size: int) -> EtcdCluster:
    """The cluster, once it has that many members, all ready, and nothing is left to do.

    Its pods are asked too: the status may be of before something happened to them.
    """
    await cluster.eventually(
        lambda: _told(cluster),
        lambda told: len(told[2]) == size == told[1].size and told[1].members.ready == told[2] and _is_calm(*told[:2]),
        timeout=SECONDS,
        what=f"{size} members that serve",
    )
    return await cluster.get(EtcdCluster, NAME)


async def _told(cluster: Cluster) -> tuple[int | None, EtcdClusterStatus, list[str]]:
    found = await cluster.get(EtcdCluster, NAME)
    pods = await cluster.list(Pod, labels={"etcd_cluster": NAME})
    return found.metadata.generation, found.status, sorted(pod.name for pod in pods if is_ready(pod))


def _is_calm(generation: int | None, status: EtcdClusterStatus) -> bool:
    current = status.observed_generation == generation
    return current and not status.is_true("Progressing") and not status.is_true("Degraded")


async def claims(cluster: Cluster) -> set[str]:
    """Which claims there are."""
    return {str(claim.metadata.uid) for claim in await cluster.list(PersistentVolumeClaim)}


def processes_of(pod: Pod) -> list[int]:
    """The processes of a pod's etcd, by what they were started with."""
    address = f"--listen-client-urls=http://{pod.status.pod_ip}:2379".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if address in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found
