"""Claims that pods use, and volumes that claims have, stay until they are used no more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from navarch.api import Key
from navarch.cache import Cached, Change, Collection
from navarch.client import MergePatch
from navarch.cluster.controllers.parts import Around, Workers
from navarch.errors import NotFound
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod

__all__ = ["StorageProtection"]

_OF_CLAIMS: Final = "kubernetes.io/pvc-protection"
_OF_VOLUMES: Final = "kubernetes.io/pv-protection"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_INDEX: Final = "claims"


class _Item(NamedTuple):
    kind: type[PersistentVolumeClaim | PersistentVolume]
    namespace: str
    name: str


class StorageProtection:
    """Gives every claim and volume a finalizer, and takes it off one that is to go when nobody uses it."""

    def __init__(self, around: Around) -> None:
        self._client = around.client
        self._claims = around.cache.collection(PersistentVolumeClaim)
        self._volumes = around.cache.collection(PersistentVolume)
        self._pods = around.cache.collection(Cached(Pod, indexes={_INDEX: claims_of}))
        self._workers: Workers[_Item] = Workers("protection of storage", around, self._attend)

    async def run(self) -> None:
        """Works until it is cancelled."""
        subscriptions: tuple[tuple[Collection[Any], Any], ...] = (
            (self._claims, self._claim_changed),
            (self._volumes, self._volume_changed),
            (self._pods, self._pod_changed),
        )
        for collection, subscriber in subscriptions:
            collection.subscribe(subscriber)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._workers.run(), name="protection of storage")
        finally:
            for collection, subscriber in subscriptions:
                collection.unsubscribe(subscriber)

    def _claim_changed(self, change: Change) -> None:
        key = change.newest.key
        self._workers.queue.add(_Item(PersistentVolumeClaim, key.namespace, key.name))

    def _volume_changed(self, change: Change) -> None:
        self._workers.queue.add(_Item(PersistentVolume, "", change.newest.key.name))

    def _pod_changed(self, change: Change) -> None:
        """A pod that has gone, or ended, may have been the last to use a claim."""
        if change.old is None and not change.initial:
            return
        for name in claims_of(self._pods.view(change.newest)):
            self._workers.queue.add(_Item(PersistentVolumeClaim, change.newest.key.namespace, name))

    async def _attend(self, item: _Item) -> None:
        is_claim = item.kind is PersistentVolumeClaim
        collection: Collection[Any] = self._claims if is_claim else self._volumes
        entry = collection.entry(Key(item.namespace, item.name))
        if entry is None:
            return
        found = collection.view(entry)
        name = _OF_CLAIMS if is_claim else _OF_VOLUMES
        finalizers: list[str] = found.metadata.finalizers or []
        if found.metadata.deletion_timestamp is None:
            if name not in finalizers:
                await self._write(item, found, [*finalizers, name])
        elif name in finalizers and not (self._is_used(found) if is_claim else found.status.phase == "Bound"):
            await self._write(item, found, [each for each in finalizers if each != name])

    def _is_used(self, claim: PersistentVolumeClaim) -> bool:
        """By a pod that has a node and has not ended, or one that will have one."""
        users = self._pods.indexed(_INDEX, claim.name)
        pods = (self._pods.view(entry) for entry in users if entry.key.namespace == claim.namespace)
        return any(pod.spec.node_name and pod.status.phase not in _FINISHED for pod in pods)

    async def _write(self, item: _Item, found: Any, finalizers: list[str]) -> None:
        metadata = {"resourceVersion": found.metadata.resource_version, "finalizers": finalizers or None}
        patch = MergePatch({"metadata": metadata})
        try:
            await self._client.patch(item.kind, item.name, patch, namespace=item.namespace or None)
        except NotFound:
            return


def claims_of(pod: Pod) -> Iterable[str]:
    """The names of the claims that the pod uses."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.name}-{volume.name}"
