"""Claims that pods use, volumes that claims have, and classes that either has, stay until they are used no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from navarch.api import Key
from navarch.cache import Change, Collection
from navarch.client import MergePatch
from navarch.cluster.controllers.parts import Around, Workers
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.errors import NotFound
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from navarch.k8s.storage.v1 import VolumeAttributesClass

__all__ = ["StorageProtection"]

Kinds = type[PersistentVolumeClaim | PersistentVolume | VolumeAttributesClass]


class _Item(NamedTuple):
    kind: Kinds
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class _Protected:
    """The objects of one kind, the finalizer that keeps them, and when they are used."""

    collection: Collection[Any]
    finalizer: str
    is_used: Callable[[Any], bool]


class StorageProtection:
    """Gives every such object a finalizer, and takes it off one that is to go when nobody uses it."""

    def __init__(self, around: Around) -> None:
        self._client = around.client
        self._pods = around.pods
        collection = around.cache.collection
        self._protected: dict[Kinds, _Protected] = {
            PersistentVolumeClaim: _Protected(
                collection(PersistentVolumeClaim), "kubernetes.io/pvc-protection", self._is_claim_used
            ),
            PersistentVolume: _Protected(
                collection(PersistentVolume), "kubernetes.io/pv-protection", lambda found: found.status.phase == "Bound"
            ),
            VolumeAttributesClass: _Protected(
                collection(VolumeAttributesClass), "kubernetes.io/vac-protection", self._is_class_used
            ),
        }
        self._workers: Workers[_Item] = Workers("protection of storage", around, self._attend)

    async def run(self) -> None:
        """Works until it is cancelled."""
        subscriptions = [(kind, partial(self._changed, kind)) for kind in self._protected]
        for kind, subscriber in subscriptions:
            self._protected[kind].collection.subscribe(subscriber)
        self._pods.subscribe(self._pod_changed)
        try:
            await self._workers.run()
        finally:
            self._pods.unsubscribe(self._pod_changed)
            for kind, subscriber in subscriptions:
                self._protected[kind].collection.unsubscribe(subscriber)

    def _changed(self, kind: Kinds, change: Change) -> None:
        """The object itself, and the classes that wait for the last who has them."""
        key = change.newest.key
        self._workers.queue.add(_Item(kind, key.namespace, key.name))
        for entry in self._protected[VolumeAttributesClass].collection.entries():
            if entry.deleting:
                self._workers.queue.add(_Item(VolumeAttributesClass, "", entry.key.name))

    def _pod_changed(self, old: PodInfo | None, pod: PodInfo | None) -> None:
        """A pod that has gone, or ended, may have been the last to use a claim."""
        gone = pod or old
        if gone is not None and (pod is None or pod.is_finished):
            for name in gone.claims:
                self._workers.queue.add(_Item(PersistentVolumeClaim, gone.namespace, name))

    async def _attend(self, item: _Item) -> None:
        protected = self._protected[item.kind]
        entry = protected.collection.entry(Key(item.namespace, item.name))
        if entry is None:
            return
        found, name = protected.collection.view(entry), protected.finalizer
        finalizers: list[str] = found.metadata.finalizers or []
        if not entry.deleting:
            if name not in finalizers:
                await self._write(item, found, [*finalizers, name])
        elif name in finalizers and not protected.is_used(found):
            await self._write(item, found, [each for each in finalizers if each != name])

    def _is_claim_used(self, claim: PersistentVolumeClaim) -> bool:
        """By a pod that has a node and has not ended."""
        return any(pod.node and not pod.is_finished for pod in self._pods.using(claim.namespace, claim.name))

    def _is_class_used(self, wanted: VolumeAttributesClass) -> bool:
        claims = self._protected[PersistentVolumeClaim].collection
        named = [_classes_of(claims.view(entry)) for entry in claims.entries()]
        volumes = self._protected[PersistentVolume].collection
        named += [{volumes.view(entry).spec.volume_attributes_class_name} for entry in volumes.entries()]
        return any(wanted.name in names for names in named)

    async def _write(self, item: _Item, found: Any, finalizers: list[str]) -> None:
        metadata = {"resourceVersion": found.metadata.resource_version, "finalizers": finalizers or None}
        patch = MergePatch({"metadata": metadata})
        try:
            await self._client.patch(item.kind, item.name, patch, namespace=item.namespace or None)
        except NotFound:
            return


def _classes_of(claim: PersistentVolumeClaim) -> set[str | None]:
    """The class that the claim has, and the one that it is to have."""
    return {claim.spec.volume_attributes_class_name, claim.status.current_volume_attributes_class_name}
