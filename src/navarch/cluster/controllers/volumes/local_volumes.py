"""Volumes in folders of the machine: their storage class, their provisioning and their reclaiming."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from navarch.api import Key
from navarch.cache.lookup import Lookup
from navarch.cluster.controllers.volumes.matching import (
    DEFAULT_CLASS,
    LOCAL,
    PROVISIONED_BY,
    SELECTED_NODE,
    asked_size,
    reference_to,
)
from navarch.controller.context import Context
from navarch.controller.triggers import any_change
from navarch.errors import NotFound
from navarch.k8s.core.v1 import (
    HostPathVolumeSource,
    LocalVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from navarch.k8s.storage.v1 import StorageClass
from navarch.operator import Operator

_DELETE: Final = "Delete"


def declare_volume_reclaimer(operator: Operator, volumes: LocalVolumes) -> None:
    """Adds the controller that says which phase volumes are in, and deletes those that are to go with their claims."""

    @operator.controller(
        PersistentVolume,
        watches={PersistentVolumeClaim: _volume_of},
        when=any_change,
        until_gone=True,
        name="persistentvolume",
    )
    async def reclaim(volume: PersistentVolume, ctx: Context) -> None:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            volume.status.phase = "Available"
            return
        claim = await _claim_of(reference, ctx)
        if claim is not None:
            volume.status.phase = "Bound" if claim.spec.volume_name == volume.name else volume.status.phase
            return
        volume.status.phase = "Released"
        if volume.spec.persistent_volume_reclaim_policy == _DELETE and _is_local(volume):
            await volumes.remove(_path(volume))
            await ctx.delete(volume)


async def _claim_of(reference: ObjectReference, ctx: Context) -> PersistentVolumeClaim | None:
    """What is known of claims may be late: one that is missed is asked for, before data goes that it still has."""
    name, namespace = reference.name or "", reference.namespace or ""
    found = await ctx.get(PersistentVolumeClaim, name, namespace=namespace)
    if found is None or found.metadata.uid != reference.uid:
        try:
            found = await ctx.client.get(PersistentVolumeClaim, name, namespace=namespace)
        except NotFound:
            return None
    return found if found.metadata.uid == reference.uid else None


def _volume_of(claim: PersistentVolumeClaim, lookup: Lookup) -> Iterable[Key]:  # noqa: ARG001 - the form of a mapping
    name = claim.spec.volume_name
    return (Key("", name),) if name else ()


def _is_local(volume: PersistentVolume) -> bool:
    return (volume.annotations or {}).get(PROVISIONED_BY) == LOCAL


def _path(volume: PersistentVolume) -> str:
    source = volume.spec.local or volume.spec.host_path
    return source.path if source is not None else ""


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
