"""The names that claims, volumes and those who bind them have agreed on."""

from __future__ import annotations

from typing import Final

from navarch.k8s.core.v1 import ObjectReference, PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
PROVISIONER_BETA: Final = "volume.beta.kubernetes.io/storage-provisioner"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
LOCAL: Final = "navarch.dev/local"
"""Makes volumes that are folders on the machine."""


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has a volume, and both know it."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.annotations or {})


def is_claimed_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is kept for this claim: by name, and by uid if it says one."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """How a volume says whose it is."""
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.metadata.uid,
        resource_version=claim.metadata.resource_version,
    )
