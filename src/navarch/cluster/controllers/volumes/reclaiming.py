"""Volumes: whose they are, and what becomes of them when nobody needs them any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from navarch.api import Key
from navarch.cluster.controllers.volumes.local import LocalVolumes
from navarch.cluster.controllers.volumes.words import LOCAL, PROVISIONED_BY
from navarch.controller.cache_reader import Lookup
from navarch.controller.context import Context
from navarch.controller.triggers import any_change
from navarch.errors import NotFound
from navarch.k8s.core.v1 import ObjectReference, PersistentVolume, PersistentVolumeClaim
from navarch.operator import Operator

__all__ = ["declare"]

_DELETE: Final = "Delete"


def declare(operator: Operator, volumes: LocalVolumes) -> None:
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
