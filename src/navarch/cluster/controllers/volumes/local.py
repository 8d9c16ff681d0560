"""Volumes that are folders on the machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from navarch.cluster.controllers.volumes.matching import asked_size
from navarch.cluster.controllers.volumes.words import DEFAULT_CLASS, LOCAL, PROVISIONED_BY, SELECTED_NODE, reference_to
from navarch.k8s.core.v1 import (
    HostPathVolumeSource,
    LocalVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from navarch.k8s.storage.v1 import StorageClass

_HOSTNAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class LocalVolumes:
    """Where folders of volumes are: `path` has it from the name of a node (empty if any will do) and of a volume;
    `remove` removes one with all that is in it, if it is still there.
    """

    path: Callable[[str, str], str]
    remove: Callable[[str], Awaitable[None]]


def standard_class() -> StorageClass:
    """The class of claims that name none."""
    return StorageClass(
        name="standard",
        annotations={DEFAULT_CLASS: "true"},
        provisioner=LOCAL,
        reclaim_policy="Delete",
        volume_binding_mode="WaitForFirstConsumer",
        allow_volume_expansion=True,
    )


def local_volume(claim: PersistentVolumeClaim, storage: StorageClass, volumes: LocalVolumes) -> PersistentVolume:
    """The volume for a claim: on the node that was selected for it, or wherever it is used."""
    node = (claim.annotations or {}).get(SELECTED_NODE, "")
    name = f"pvc-{claim.metadata.uid}"
    path = volumes.path(node, name)
    return PersistentVolume(
        name=name,
        annotations={PROVISIONED_BY: LOCAL},
        spec=PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity={"storage": asked_size(claim)},
            claim_ref=reference_to(claim),
            local=LocalVolumeSource(path=path) if node else None,
            host_path=None if node else HostPathVolumeSource(path=path, type="DirectoryOrCreate"),
            node_affinity=_on(node) if node else None,
            persistent_volume_reclaim_policy=storage.reclaim_policy or "Delete",
            storage_class_name=storage.name,
            mount_options=storage.mount_options,
            volume_mode=claim.spec.volume_mode,
        ),
    )


def _on(node: str) -> VolumeNodeAffinity:
    requirement = NodeSelectorRequirement(key=_HOSTNAME, operator="In", values=[node])
    return VolumeNodeAffinity(
        required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[requirement])])
    )
