"""Writes of the scheduler: bindings, pod conditions, events, deletions of victims, and the volumes of a pod."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from navarch._base.tasks import within
from navarch.api import Dynamic, Key
from navarch.cache import Change
from navarch.client import MergePatch, Preconditions, StrategicPatch
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.pod_info import PodInfo
from navarch.cluster.controllers.scheduling.filters import matches_node_selector
from navarch.cluster.controllers.scheduling.node_selection import Unfit
from navarch.cluster.controllers.scheduling.snapshot import SchedulerSnapshot
from navarch.cluster.controllers.volumes.matching import (
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    find_volume,
    is_fully_bound,
)
from navarch.controller.event_records import EventType
from navarch.errors import NavarchError, NotFound
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from navarch.k8s.storage.v1 import StorageClass

_ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"
_NONE_THERE: Final = "node(s) didn't find available persistent volumes to bind"
_UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
_BINDING_SECONDS: Final = 600.0


class PodVolumes:
    """Checks the claims of pods. Calls `changed` after a change of claims, volumes or classes."""

    def __init__(self, context: ControllerContext, world: SchedulerSnapshot, changed: Callable[[], None]) -> None:
        self._client = context.client
        self._clock = context.clock
        self._world = world
        self._changed = changed
        self._claims = context.cache.collection(PersistentVolumeClaim)
        self._volumes = context.cache.collection(PersistentVolume)
        self._classes = context.cache.collection(StorageClass)
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


_PREEMPTING: Final = "preempting to accommodate a higher priority pod"


class Binder:
    """Writes the decisions of the scheduler to the API server."""

    def __init__(self, context: ControllerContext, name: str, volumes: PodVolumes) -> None:
        self._name = name
        self._clock = context.clock
        self._client = context.client.using(manager=name)
        self._recorder = context.recorder
        self._volumes = volumes

    async def bind(self, pod: PodInfo, node: str) -> str:
        """Binds the pod's volumes, then the pod; why it could not be done, or nothing."""
        try:
            if pod.claims:
                await self._volumes.bind(pod, node)
            await self._client.bind(pod.key.name, node, namespace=pod.namespace, uid=pod.uid)
        except (NavarchError, TimeoutError, Unfit) as error:
            self.tell(pod, "FailedScheduling", f"binding rejected: {error}", type="Warning", action="Binding")
            return str(error)
        self.tell(pod, "Scheduled", f"Successfully assigned {pod.key} to {node}", action="Binding")
        return ""

    def tell(
        self,
        pod: PodInfo,
        reason: str,
        note: str,
        *,
        type: EventType = "Normal",  # noqa: A002 - the API's word
        action: str = "Scheduling",
    ) -> None:
        """Records an event about the pod."""
        self._recorder.record(_reference(pod), reason, note, type=type, action=action, controller=self._name)

    async def patch_status(self, pod: PodInfo, patch: StrategicPatch) -> None:
        """Changes the pod's status; one that is gone needs none."""
        try:
            await self._client.patch(Pod, pod.key.name, patch, namespace=pod.namespace, subresource="status")
        except NotFound:
            return

    async def preempt(self, victim: PodInfo, preemptor: PodInfo) -> None:
        """Ends a pod that is in the way of a more important one, and says so in its conditions."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{self._name}: {_PREEMPTING}",
            "lastTransitionTime": self._clock.now().replace(microsecond=0),
        }
        await self.patch_status(victim, StrategicPatch({"status": {"conditions": [condition]}}))
        try:
            await self._client.delete(
                Pod, victim.key.name, namespace=victim.namespace, preconditions=Preconditions(uid=victim.uid)
            )
        except NotFound:
            return
        note = f"Preempted by pod {preemptor.uid} on node {victim.node}"
        self.tell(victim, "Preempted", note, action="Preempting")


def _reference(pod: PodInfo) -> Dynamic:
    metadata = {"name": pod.key.name, "namespace": pod.namespace, "uid": pod.uid}
    return Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
