"""Binds each PersistentVolumeClaim to an existing volume or to a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from navarch.api import Key
from navarch.api.names import DNS_SUBDOMAIN
from navarch.cache.lookup import Lookup
from navarch.client import MergePatch
from navarch.cluster.controllers.volumes.local_volumes import LocalVolumes, local_volume
from navarch.cluster.controllers.volumes.matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    DEFAULT_CLASS,
    LOCAL,
    PROVISIONED_BY,
    PROVISIONER,
    PROVISIONER_BETA,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    asked_size,
    find_volume,
    is_claimed_by,
    reference_to,
    size_of,
)
from navarch.controller.context import Context
from navarch.controller.triggers import any_change
from navarch.errors import AlreadyExists
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from navarch.k8s.storage.v1 import StorageClass
from navarch.operator import Operator

_YES: Final = "yes"
_EXTERNAL: Final = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system administrator. "
    "If volume creation is delayed, please verify that the provisioner is running and correctly registered."
)


def declare_claim_binder(operator: Operator, volumes: LocalVolumes) -> None:
    """Adds the controller that binds claims."""

    @operator.controller(
        PersistentVolumeClaim,
        watches={PersistentVolume: _claims_for, StorageClass: _claims_of_class},
        when=any_change,
        name="persistentvolume-binder",
    )
    async def bind(claim: PersistentVolumeClaim, ctx: Context) -> None:
        binding = _ClaimBinding(claim, ctx, volumes)
        if claim.spec.volume_name:
            await binding.keep(claim.spec.volume_name)
        else:
            await binding.find()


def _claims_for(volume: PersistentVolume, lookup: Lookup) -> Iterable[Key]:
    """Whose it is; one that is free may suit any claim of its class that waits."""
    if (reference := volume.spec.claim_ref) is not None:
        yield Key(reference.namespace or "", reference.name or "")
        return
    for claim in lookup.list(PersistentVolumeClaim):
        if not claim.spec.volume_name and (claim.spec.storage_class_name or "") == (
            volume.spec.storage_class_name or ""
        ):
            yield Key(claim.namespace, claim.name)


def _claims_of_class(storage: StorageClass, lookup: Lookup) -> Iterable[Key]:
    wanted = {storage.name, None} if _is_default(storage) else {storage.name}
    for claim in lookup.list(PersistentVolumeClaim):
        if not claim.spec.volume_name and claim.spec.storage_class_name in wanted:
            yield Key(claim.namespace, claim.name)


def _is_default(storage: StorageClass) -> bool:
    return (storage.annotations or {}).get(DEFAULT_CLASS) == "true"


@dataclass(slots=True)
class _ClaimBinding:
    """One reconcile of one claim."""

    claim: PersistentVolumeClaim
    ctx: Context
    volumes: LocalVolumes

    async def keep(self, name: str) -> None:
        """The claim says which volume it has, or wants."""
        volume = await self.ctx.get(PersistentVolume, name)
        is_bound = BIND_COMPLETED in (self.claim.annotations or {})
        if volume is None:
            self._lose("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!", is_bound)
        elif is_claimed_by(volume, self.claim) or (volume.spec.claim_ref is None and not is_bound):
            await self._bind(volume)
            await self._grow(volume)
        elif volume.spec.claim_ref is None:
            self._lose(
                "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!", is_bound
            )
        else:
            self._lose(
                "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly", is_bound
            )

    def _lose(self, reason: str, note: str, is_bound: bool) -> None:
        if not is_bound:
            self.claim.status.phase = "Pending"
        elif self.claim.status.phase != "Lost":
            self.claim.status.phase = "Lost"
            self.ctx.event(reason, note, type="Warning")

    async def find(self) -> None:
        """The claim waits for a volume."""
        storage = await self._class()
        waits = storage is not None and storage.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        selected = (self.claim.annotations or {}).get(SELECTED_NODE, "")
        found = find_volume(self.claim, await self._candidates(selected))
        if found is not None and (not waits or selected or found.spec.claim_ref is not None):
            await self._bind(found)
        elif found is None and await self._takes_default():
            return
        elif waits and not selected:
            self._wait("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
        elif storage is not None:
            await self._provision(storage)
        elif self.claim.spec.storage_class_name:
            name = self.claim.spec.storage_class_name
            self._wait("ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found', type_="Warning")
        else:
            self._wait("FailedBinding", "no persistent volumes available for this claim and no storage class is set")

    def _wait(self, reason: str, note: str, type_: str = "Normal") -> None:
        self.claim.status.phase = "Pending"
        self.ctx.event(reason, note, type="Warning" if type_ == "Warning" else "Normal")

    async def _class(self) -> StorageClass | None:
        name = self.claim.spec.storage_class_name
        return await self.ctx.get(StorageClass, name) if name else None

    async def _takes_default(self) -> bool:
        """Returns True if the claim named no class and has one now: the default one, which came after it."""
        if self.claim.spec.storage_class_name is not None:
            return False
        marked = sorted(filter(_is_default, await self.ctx.list(StorageClass)), key=lambda each: each.name)
        youngest = max(marked, key=lambda each: str(each.metadata.creation_timestamp), default=None)
        if youngest is not None:
            await self._patch_claim({"spec": {"storageClassName": youngest.name}})
        return youngest is not None

    async def _candidates(self, node: str) -> list[PersistentVolume]:
        """All volumes; for a node that was selected, those that are there or anywhere."""
        volumes = await self.ctx.list(PersistentVolume)
        return [volume for volume in volumes if not node or _is_on(volume, node)]

    async def _provision(self, storage: StorageClass) -> None:
        await self._say_provisioner(storage.provisioner)
        if storage.provisioner != LOCAL:
            self._wait("ExternalProvisioning", _EXTERNAL.format(storage.provisioner))
            return
        node = (self.claim.annotations or {}).get(SELECTED_NODE, "")
        if node and not DNS_SUBDOMAIN.allows(node):  # it becomes a part of a path
            self._wait("ProvisioningFailed", f"node {node!r} not found", type_="Warning")
            return
        volume = local_volume(self.claim, storage, self.volumes)
        try:
            await self.ctx.create(volume, owned=False)
        except AlreadyExists:
            return
        self.ctx.event("ProvisioningSucceeded", f"Successfully provisioned volume {volume.name}")
        self.claim.status.phase = "Pending"

    async def _say_provisioner(self, name: str) -> None:
        said = {PROVISIONER: name, PROVISIONER_BETA: name}
        if {**said, **(self.claim.annotations or {})} != (self.claim.annotations or {}):
            await self._patch_claim({"metadata": {"annotations": said}})

    async def _bind(self, volume: PersistentVolume) -> None:
        """First the volume says whose it is, then the claim what it has: whoever fails between goes on from there."""
        claim = self.claim
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            said = {} if reference is not None else {BOUND_BY_CONTROLLER: _YES}
            metadata = {"resourceVersion": volume.metadata.resource_version, "annotations": said}
            changes = {"metadata": metadata, "spec": {"claimRef": reference_to(claim)}}
            await self.ctx.client.patch(PersistentVolume, volume.name, MergePatch(changes))
        if claim.spec.volume_name != volume.name or BIND_COMPLETED not in (claim.annotations or {}):
            said = (
                {BIND_COMPLETED: _YES} if claim.spec.volume_name else {BIND_COMPLETED: _YES, BOUND_BY_CONTROLLER: _YES}
            )
            await self._patch_claim({"metadata": {"annotations": said}, "spec": {"volumeName": volume.name}})
        claim.status.phase = "Bound"
        claim.status.access_modes = volume.spec.access_modes
        claim.status.capacity = claim.status.capacity or {"storage": size_of(volume)}

    async def _grow(self, volume: PersistentVolume) -> None:
        """A folder grows by saying so."""
        wanted = asked_size(self.claim)
        if size_of(volume) < wanted and (volume.annotations or {}).get(PROVISIONED_BY) == LOCAL:
            changes = {"spec": {"capacity": {"storage": wanted}}}
            await self.ctx.client.patch(PersistentVolume, volume.name, MergePatch(changes))
            self.claim.status.capacity = {"storage": wanted}
            self.ctx.event("VolumeResizeSuccessful", "Resize volume succeeded")

    async def _patch_claim(self, changes: dict[str, object]) -> None:
        claim = self.claim
        patched = await self.ctx.client.patch(
            PersistentVolumeClaim, claim.name, MergePatch(changes), namespace=claim.namespace
        )
        claim.metadata.resource_version = patched.metadata.resource_version
        claim.annotations.update(patched.annotations)
        claim.spec.volume_name = patched.spec.volume_name


def _is_on(volume: PersistentVolume, node: str) -> bool:
    """Returns True if the volume can be used on that node, by its name; other labels are the scheduler's to look at."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    return required is None or any(
        node in (requirement.values or ())
        for term in required.node_selector_terms
        for requirement in (*(term.match_expressions or ()), *(term.match_fields or ()))
    )
