"""Volumes of pods that wait for a node: where they can be used, and binding those that wait for their first user."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from navarch._base.tasks import within
from navarch.api import Key
from navarch.cache import Change
from navarch.client import MergePatch
from navarch.cluster.controllers.parts import Around
from navarch.cluster.controllers.scheduling.choosing import Unfit
from navarch.cluster.controllers.scheduling.filters import matches_node_selector
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.cluster.controllers.scheduling.world import World
from navarch.cluster.controllers.volumes.matching import find_volume
from navarch.cluster.controllers.volumes.words import (
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    is_fully_bound,
)
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from navarch.k8s.storage.v1 import StorageClass

_ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"
_NONE_THERE: Final = "node(s) didn't find available persistent volumes to bind"
_UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
_BINDING_SECONDS: Final = 600.0


class PodVolumes:
    """Looks at the claims of pods. `changed` is called when claims, volumes or classes have changed."""

    def __init__(self, around: Around, world: World, changed: Callable[[], None]) -> None:
        self._client = around.client
        self._clock = around.clock
        self._world = world
        self._changed = changed
        self._claims = around.cache.collection(PersistentVolumeClaim)
        self._volumes = around.cache.collection(PersistentVolume)
        self._classes = around.cache.collection(StorageClass)
        self._news = asyncio.Event()

    def subscribe(self) -> None:
        """Tells of changes from now on."""
        for collection in (self._claims, self._volumes, self._classes):
            collection.subscribe(self._told)

    def unsubscribe(self) -> None:
        """Tells no more."""
        for collection in (self._claims, self._volumes, self._classes):
            collection.unsubscribe(self._told)

    def _told(self, change: Change) -> None:  # noqa: ARG002 - whatever it was, volumes are looked at anew
        self._news.set()
        self._news = asyncio.Event()
        self._changed()

    # Filtering

    def verdict(self, pod: PodInfo) -> Callable[[str], str] | None:
        """Says of nodes why the pod's volumes cannot be used there. Raises `Unfit` if they can be used nowhere."""
        checks = [self._check(claim) for claim in self._claims_of(pod)]

        def verdict(node: str) -> str:
            return next(filter(None, (check(node) for check in checks)), "")

        return verdict

    def _claims_of(self, pod: PodInfo) -> Iterator[PersistentVolumeClaim]:
        for name in pod.claims:
            entry = self._claims.entry(Key(pod.namespace, name))
            if entry is None:
                raise Unfit(f'persistentvolumeclaim "{name}" not found')
            if entry.deleting:
                raise Unfit(f'persistentvolumeclaim "{name}" is being deleted')
            yield self._claims.view(entry)

    def _check(self, claim: PersistentVolumeClaim) -> Callable[[str], str]:
        if is_fully_bound(claim):
            entry = self._volumes.entry(Key("", claim.spec.volume_name or ""))
            if entry is None:
                named = f'"{claim.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
                raise Unfit(f"persistentvolumeclaim {named}")
            volume = self._volumes.view(entry)
            return lambda node: "" if self._is_usable(volume, node) else _ELSEWHERE
        storage = self._class_of(claim)
        if storage is None or storage.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            raise Unfit(_UNBOUND)
        return lambda node: "" if self._can_have(claim, storage, node) else _NONE_THERE

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        entry = self._classes.entry(Key("", claim.spec.storage_class_name or ""))
        return self._classes.view(entry) if entry is not None else None

    def _is_usable(self, volume: PersistentVolume, node: str) -> bool:
        required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
        info = self._world.nodes[node].info
        return required is None or matches_node_selector(required, info.labels, node)

    def _can_have(self, claim: PersistentVolumeClaim, storage: StorageClass, node: str) -> bool:
        """By a volume that is there, or one that is made for it."""
        selected = (claim.annotations or {}).get(SELECTED_NODE)
        if selected and selected != node:
            return False
        if storage.provisioner != NO_PROVISIONER:
            return True
        volumes = (self._volumes.view(entry) for entry in self._volumes.entries())
        return find_volume(claim, (each for each in volumes if self._is_usable(each, node))) is not None

    # Binding

    async def bind(self, pod: PodInfo, node: str) -> None:
        """Says for which node the claims are, and returns when they are bound. Raises `TimeoutError`."""
        for claim in self._unbound(pod):
            patch = MergePatch({"metadata": {"annotations": {SELECTED_NODE: node}}})
            if (claim.annotations or {}).get(SELECTED_NODE) != node:
                await self._client.patch(PersistentVolumeClaim, claim.name, patch, namespace=claim.namespace)
        await within(self._clock, _BINDING_SECONDS, self._all_bound(pod))

    def _unbound(self, pod: PodInfo) -> list[PersistentVolumeClaim]:
        return [claim for claim in self._claims_of(pod) if not is_fully_bound(claim)]

    async def _all_bound(self, pod: PodInfo) -> None:
        while self._unbound(pod):
            await self._news.wait()
