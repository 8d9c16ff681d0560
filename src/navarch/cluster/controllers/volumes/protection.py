"""Claims that pods use, and volumes that claims have, stay until they are used no more."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

from navarch.api import Key
from navarch.cache import Change, Collection
from navarch.client import MergePatch
from navarch.cluster.controllers.parts import Around, Workers
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.errors import NotFound
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim

__all__ = ["StorageProtection"]

_OF_CLAIMS: Final = "kubernetes.io/pvc-protection"
_OF_VOLUMES: Final = "kubernetes.io/pv-protection"


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
        self._pods = around.pods
        self._workers: Workers[_Item] = Workers("protection of storage", around, self._attend)

    async def run(self) -> None:
        """Works until it is cancelled."""
        subscriptions: tuple[tuple[Collection[Any], Any], ...] = (
            (self._claims, self._claim_changed),
            (self._volumes, self._volume_changed),
        )
        for collection, subscriber in subscriptions:
            collection.subscribe(subscriber)
        self._pods.subscribe(self._pod_changed)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._workers.run(), name="protection of storage")
        finally:
            self._pods.unsubscribe(self._pod_changed)
            for collection, subscriber in subscriptions:
                collection.unsubscribe(subscriber)

    def _claim_changed(self, change: Change) -> None:
        key = change.newest.key
        self._workers.queue.add(_Item(PersistentVolumeClaim, key.namespace, key.name))

    def _volume_changed(self, change: Change) -> None:
        self._workers.queue.add(_Item(PersistentVolume, "", change.newest.key.name))

    def _pod_changed(self, old: PodInfo | None, pod: PodInfo | None) -> None:
        """A pod that has gone, or ended, may have been the last to use a claim."""
        gone = pod or old
        if gone is not None and (pod is None or pod.is_finished):
            for name in gone.claims:
                self._workers.queue.add(_Item(PersistentVolumeClaim, gone.namespace, name))

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
        """By a pod that has a node and has not ended."""
        return any(pod.node and not pod.is_finished for pod in self._pods.using(claim.namespace, claim.name))

    async def _write(self, item: _Item, found: Any, finalizers: list[str]) -> None:
        metadata = {"resourceVersion": found.metadata.resource_version, "finalizers": finalizers or None}
        patch = MergePatch({"metadata": metadata})
        try:
            await self._client.patch(item.kind, item.name, patch, namespace=item.namespace or None)
        except NotFound:
            return
