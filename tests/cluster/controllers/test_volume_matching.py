"""Which of the volumes that are there suits a claim."""

from __future__ import annotations

from typing import Any

from navarch.api import Quantity
from navarch.cluster.controllers.volumes.matching import find_volume
from navarch.k8s.core.v1 import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    VolumeResourceRequirements,
)
from navarch.k8s.meta.v1 import LabelSelector


def volume(name: str, size: str = "1Gi", **spec: Any) -> PersistentVolume:
    fields = {"access_modes": ["ReadWriteOnce"], "storage_class_name": "disk", **spec}
    return PersistentVolume(
        name=name,
        labels=fields.pop("labels", {}),
        spec=PersistentVolumeSpec(capacity={"storage": Quantity(size)}, **fields),
    )


def claim(size: str = "1Gi", **spec: Any) -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": Quantity(size)})
    fields = {"access_modes": ["ReadWriteOnce"], "storage_class_name": "disk", **spec}
    found = PersistentVolumeClaim(
        name="data", namespace="default", spec=PersistentVolumeClaimSpec(resources=resources, **fields)
    )
    found.metadata.uid = "1-2-3"
    return found


def chosen(wanted: PersistentVolumeClaim, *volumes: PersistentVolume) -> str:
    found = find_volume(wanted, volumes)
    return found.name if found is not None else ""


def test_smallest_that_is_large_enough_is_taken() -> None:
    """Not the first, and none that is too small."""
    sizes = [volume("large", "5Gi"), volume("small", "1Gi"), volume("middle", "3Gi")]
    assert chosen(claim("2Gi"), *sizes) == "middle"
    assert chosen(claim("9Gi"), *sizes) == ""


def test_class_mode_and_access_have_to_fit() -> None:
    """A volume may allow more than is asked for, not less."""
    assert chosen(claim(storage_class_name="other"), volume("a")) == ""
    assert chosen(claim(volume_mode="Block"), volume("a")) == ""
    assert chosen(claim(access_modes=["ReadWriteMany"]), volume("a")) == ""
    assert chosen(claim(), volume("a", access_modes=["ReadWriteOnce", "ReadWriteMany"])) == "a"


def test_selector_chooses_by_label() -> None:
    """Of those that fit otherwise."""
    fast = claim(selector=LabelSelector(match_labels={"speed": "fast"}))
    assert chosen(fast, volume("slow", labels={"speed": "slow"}), volume("fast", labels={"speed": "fast"})) == "fast"


def test_volume_of_somebody_else_is_not_taken() -> None:
    """Whether by name or by uid."""
    other = ObjectReference(namespace="default", name="other")
    older = ObjectReference(namespace="default", name="data", uid="0-0-0")
    assert chosen(claim(), volume("a", claim_ref=other), volume("b", claim_ref=older)) == ""


def test_volume_that_is_kept_for_the_claim_comes_first() -> None:
    """Even if another is smaller."""
    own = ObjectReference(namespace="default", name="data")
    assert chosen(claim(), volume("small"), volume("kept", "9Gi", claim_ref=own)) == "kept"
