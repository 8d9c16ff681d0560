"""Which of the volumes that are there suits a claim."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.api import Labels, Quantity, to_builtins
from navarch.cluster.controllers.volumes.words import is_claimed_by
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim

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
    """Whether the claim could have this volume: it is large enough, of the same class and mode, and not to go."""
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
