"""What the scheduler writes: bindings, conditions, events, and the end of pods that are in the way."""

from __future__ import annotations

from typing import Final

from navarch.api import Dynamic
from navarch.client import Preconditions, StrategicPatch
from navarch.cluster.controllers.parts import Around
from navarch.cluster.controllers.scheduling.choosing import Unfit
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.cluster.controllers.scheduling.volumes import PodVolumes
from navarch.controller.event_records import EventType
from navarch.errors import NavarchError, NotFound
from navarch.k8s.core.v1 import Pod

__all__ = ["Binder"]

_PREEMPTING: Final = "preempting to accommodate a higher priority pod"


class Binder:
    """Carries out what was decided, in the scheduler's name."""

    def __init__(self, around: Around, name: str, volumes: PodVolumes) -> None:
        self._name = name
        self._clock = around.clock
        self._client = around.client.using(manager=name)
        self._recorder = around.recorder
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
