"""`VolumeProtection`: keeps the finalizers of claims, volumes and classes that are in use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from navarch.api import Key, encode
from navarch.cache import Change, Collection
from navarch.client import ALL, MergePatch
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.pod_info import PodInfo, pod_info
from navarch.cluster.workers import Workers
from navarch.errors import NotFound
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from navarch.k8s.storage.v1 import VolumeAttributesClass

_LATE_SECONDS: Final = 1.0
"""When to look again at what is used by somebody of whom nothing is known yet."""

Kinds = type[PersistentVolumeClaim | PersistentVolume | VolumeAttributesClass]


class _ProtectedItem(NamedTuple):
    kind: Kinds
    namespace: str
    name: str


async def _by_nobody(_: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class _Protected:
    """The objects of one kind, the finalizer that keeps them, and when they are used: as far as is known, and after all.

    What is known of those who use an object may be late: the server is asked before it goes, as Kubernetes does. Its own
    state needs no second look: the write that lets it go fails if there is a newer one.
    """

    collection: Collection[Any]
    finalizer: str
    is_used: Callable[[Any], bool]
    is_used_after_all: Callable[[Any], Awaitable[bool]] = _by_nobody


class VolumeProtection:
    """Adds the protection finalizer to claims, volumes and classes; removes it from a terminating one that is not in use."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._pods = context.pods
        collection = context.cache.collection
        self._protected: dict[Kinds, _Protected] = {
            PersistentVolumeClaim: _Protected(
                collection(PersistentVolumeClaim),
                "kubernetes.io/pvc-protection",
                lambda claim: _is_one_running(self._pods.using(claim.namespace, claim.name)),
                self._has_pods,
            ),
            PersistentVolume: _Protected(
                collection(PersistentVolume), "kubernetes.io/pv-protection", lambda found: found.status.phase == "Bound"
            ),
            VolumeAttributesClass: _Protected(
                collection(VolumeAttributesClass),
                "kubernetes.io/vac-protection",
                self._is_class_known,
                self._is_class_named,
            ),
        }
        self._workers: Workers[_ProtectedItem] = Workers(
            "protection of storage", context.clock, context.rng, self._attend
        )

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
        self._workers.queue.add(_ProtectedItem(kind, key.namespace, key.name))
        for entry in self._protected[VolumeAttributesClass].collection.entries():
            if entry.deleting:
                self._workers.queue.add(_ProtectedItem(VolumeAttributesClass, "", entry.key.name))

    def _pod_changed(self, old: PodInfo | None, pod: PodInfo | None) -> None:
        """A pod that has gone, or ended, may have been the last to use a claim."""
        gone = pod or old
        if gone is not None and (pod is None or pod.is_finished):
            for name in gone.claims:
                self._workers.queue.add(_ProtectedItem(PersistentVolumeClaim, gone.namespace, name))

    async def _attend(self, item: _ProtectedItem) -> float | None:
        protected = self._protected[item.kind]
        entry = protected.collection.entry(Key(item.namespace, item.name))
        if entry is None:
            return None
        found, name = protected.collection.view(entry), protected.finalizer
        finalizers: list[str] = found.metadata.finalizers or []
        if not entry.deleting:
            if name not in finalizers:
                await self._write(item, found, [*finalizers, name])
        elif name in finalizers and not protected.is_used(found):
            if await protected.is_used_after_all(found):
                return _LATE_SECONDS
            await self._write(item, found, [each for each in finalizers if each != name])
        return None

    async def _has_pods(self, claim: PersistentVolumeClaim) -> bool:
        pods = [pod_info(encode(pod)) for pod in await self._client.list(Pod, namespace=claim.namespace)]
        return _is_one_running(pod for pod in pods if claim.name in pod.claims)

    def _is_class_known(self, wanted: VolumeAttributesClass) -> bool:
        claims, volumes = (self._protected[kind].collection for kind in (PersistentVolumeClaim, PersistentVolume))
        return _names_class(wanted, map(claims.view, claims.entries()), map(volumes.view, volumes.entries()))

    async def _is_class_named(self, wanted: VolumeAttributesClass) -> bool:
        claims = await self._client.list(PersistentVolumeClaim, namespace=ALL)
        return _names_class(wanted, claims, await self._client.list(PersistentVolume))

    async def _write(self, item: _ProtectedItem, found: Any, finalizers: list[str]) -> None:
        metadata = {"resourceVersion": found.metadata.resource_version, "finalizers": finalizers or None}
        patch = MergePatch({"metadata": metadata})
        try:
            await self._client.patch(item.kind, item.name, patch, namespace=item.namespace or None)
        except NotFound:
            return


def _is_one_running(pods: Iterable[PodInfo]) -> bool:
    """Returns True if a pod has a node and has not ended."""
    return any(pod.node and not pod.is_finished for pod in pods)


def _names_class(
    wanted: VolumeAttributesClass, claims: Iterable[PersistentVolumeClaim], volumes: Iterable[PersistentVolume]
) -> bool:
    return any(wanted.name in _classes_of(claim) for claim in claims) or any(
        wanted.name == volume.spec.volume_attributes_class_name for volume in volumes
    )


def _classes_of(claim: PersistentVolumeClaim) -> set[str | None]:
    """The class that the claim has, and the one that it is to have."""
    return {claim.spec.volume_attributes_class_name, claim.status.current_volume_attributes_class_name}
