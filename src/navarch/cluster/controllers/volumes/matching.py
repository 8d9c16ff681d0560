"""Matches volumes to claims by size, class, mode and claim reference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from navarch.api import Labels, Quantity, to_builtins
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
    """Returns True if the claim has a volume, and both know it."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.annotations or {})


def is_claimed_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Returns True if the volume is kept for this claim: by name, and by uid if it says one."""
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


_STORAGE = "storage"


def asked_size(claim: PersistentVolumeClaim) -> Quantity:
    """How much the claim asks for."""
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    return (requests or {}).get(_STORAGE, Quantity(0))


def size_of(volume: PersistentVolume) -> Quantity:
    """How much the volume has."""
    return (volume.spec.capacity or {}).get(_STORAGE, Quantity(0))


def find_volume(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> PersistentVolume | None:
    """One that is kept for the claim; otherwise the smallest that is free and suits it."""
    fitting = [volume for volume in volumes if suits(volume, claim)]
    kept = next((volume for volume in fitting if is_claimed_by(volume, claim)), None)
    free = (volume for volume in fitting if volume.spec.claim_ref is None)
    return kept or min(free, key=lambda volume: (size_of(volume).decimal, volume.name), default=None)


def suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Returns True if the claim could have this volume: it is large enough, of the same class and mode, and not to go."""
    if volume.metadata.deletion_timestamp is not None or size_of(volume) < asked_size(claim):
        return False
    if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
        return False
    if not set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ()):
        return False
    if is_claimed_by(volume, claim):
        return True
    if (volume.spec.storage_class_name or "") != (claim.spec.storage_class_name or ""):
        return False
    selector = claim.spec.selector
    return selector is None or Labels.from_wire(to_builtins(selector)).matches(volume.labels)
