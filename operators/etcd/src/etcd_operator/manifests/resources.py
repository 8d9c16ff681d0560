"""The Services, the PodDisruptionBudget and the PersistentVolumeClaims of a cluster."""

from __future__ import annotations

from typing import Any, Final

from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.manifests.names import CLIENT_PORT, PEER_PORT, labels_of
from navarch import IntOrString
from navarch.k8s.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Service,
    ServicePort,
    ServiceSpec,
    VolumeResourceRequirements,
)
from navarch.k8s.meta.v1 import LabelSelector
from navarch.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec

SURVIVOR: Final = f"{GROUP}/survivor"


def survivor_patch(*, is_chosen: bool) -> dict[str, Any]:
    """Returns the patch that marks a claim as the survivor of a quorum loss, or removes the mark."""
    return {"metadata": {"annotations": {SURVIVOR: "true" if is_chosen else None}}}


def keeps_data(cluster: EtcdCluster) -> bool:
    """Reports whether members have claims, so that their data outlives their pods."""
    return storage_of(cluster) is not None


def storage_of(cluster: EtcdCluster) -> PersistentVolumeClaimSpec | None:
    """Returns the spec of each member's claim; None without claims."""
    storage = cluster.spec.storage
    if storage is None:
        return cluster.spec.pod.persistent_volume_claim_spec if cluster.spec.pod else None
    return PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        resources=VolumeResourceRequirements(requests={"storage": storage.size}),
        storage_class_name=storage.class_name or None,
    )


def member_claim(cluster: EtcdCluster, name: str) -> PersistentVolumeClaim:
    """Returns the claim of one member; call it only if `keeps_data`."""
    spec = storage_of(cluster)
    assert spec is not None
    return PersistentVolumeClaim(name=name, labels=labels_of(cluster), spec=spec)


def growth_patch(cluster: EtcdCluster, found: PersistentVolumeClaim) -> dict[str, Any] | None:
    """Returns the patch that grows a claim to the size of the spec; None if it is large enough."""
    wanted = storage_of(cluster)
    size = _size(wanted) if wanted else None
    has = _size(found.spec)
    if size is None or has is None or size.decimal <= has.decimal:
        return None
    return {"spec": {"resources": {"requests": {"storage": str(size)}}}}


def _size(spec: PersistentVolumeClaimSpec) -> Any:
    return ((spec.resources.requests if spec.resources else None) or {}).get("storage")


def budget(cluster: EtcdCluster, voters: int) -> PodDisruptionBudget:
    """Returns a budget that keeps a quorum of the voters or of spec.size, whichever is larger.

    It sets minAvailable, because maxUnavailable would be recounted after each deleted pod.
    """
    quorum = max(voters, cluster.spec.size) // 2 + 1 if cluster.spec.size else 0
    labels = labels_of(cluster)
    return PodDisruptionBudget(
        name=cluster.name,
        labels=labels,
        spec=PodDisruptionBudgetSpec(min_available=quorum, selector=LabelSelector(match_labels=labels)),
    )


def services(cluster: EtcdCluster) -> list[Service]:
    """Returns the headless Service `<name>` for member host names, and `<name>-client` for clients."""
    labels = labels_of(cluster)
    peers = ServiceSpec(
        cluster_ip="None",
        publish_not_ready_addresses=True,
        selector=labels,
        ports=[_port("client", CLIENT_PORT), _port("peer", PEER_PORT)],
    )
    clients = ServiceSpec(selector=labels, ports=[_port("client", CLIENT_PORT)])
    return [
        Service(name=cluster.name, labels=labels, spec=peers),
        Service(name=f"{cluster.name}-client", labels=labels, spec=clients),
    ]


def _port(name: str, number: int) -> ServicePort:
    target: IntOrString = number
    return ServicePort(name=name, port=number, protocol="TCP", target_port=target)
