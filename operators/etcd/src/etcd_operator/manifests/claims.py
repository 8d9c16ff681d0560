"""Claims of members."""

from __future__ import annotations

from typing import Any, Final

from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.manifests.names import labels_of
from navarch.k8s.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements

__all__ = ["SURVIVOR", "chosen", "claim", "grown", "keeps_data", "storage_of"]


SURVIVOR: Final = f"{GROUP}/survivor"


def chosen(*, is_chosen: bool) -> dict[str, Any]:
    """The change of a claim whose data a cluster goes on from, or does not any more."""
    return {"metadata": {"annotations": {SURVIVOR: "true" if is_chosen else None}}}


def keeps_data(cluster: EtcdCluster) -> bool:
    """Whether a member's data outlives its pod."""
    return storage_of(cluster) is not None


def storage_of(cluster: EtcdCluster) -> PersistentVolumeClaimSpec | None:
    """What each member claims, if anything."""
    storage = cluster.spec.storage
    if storage is None:
        return cluster.spec.pod.persistent_volume_claim_spec if cluster.spec.pod else None
    return PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        resources=VolumeResourceRequirements(requests={"storage": storage.size}),
        storage_class_name=storage.class_name or None,
    )


def claim(cluster: EtcdCluster, name: str) -> PersistentVolumeClaim:
    """The claim of one member. Only asked for where there is storage."""
    spec = storage_of(cluster)
    assert spec is not None
    return PersistentVolumeClaim(name=name, labels=labels_of(cluster), spec=spec)


def grown(cluster: EtcdCluster, found: PersistentVolumeClaim) -> dict[str, Any] | None:
    """What to change on a claim that is smaller than what is asked for now; None if it is large enough."""
    wanted = storage_of(cluster)
    size = _size(wanted) if wanted else None
    has = _size(found.spec)
    if size is None or has is None or size.decimal <= has.decimal:
        return None
    return {"spec": {"resources": {"requests": {"storage": str(size)}}}}


def _size(spec: PersistentVolumeClaimSpec) -> Any:
    return ((spec.resources.requests if spec.resources else None) or {}).get("storage")
