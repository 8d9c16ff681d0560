"""`TaintEviction`: deletes pods that do not tolerate a NoExecute taint of their node, at once or after a delay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from navarch.api import Dynamic, Key
from navarch.cache import Change
from navarch.client import Preconditions, StrategicPatch
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.pod_info import PodInfo, tolerations_of
from navarch.cluster.controllers.scheduling.filters import tolerates
from navarch.cluster.controllers.scheduling.node_info import node_info
from navarch.cluster.workers import Workers
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Node, Pod, Taint, Toleration

_NO_EXECUTE: Final = "NoExecute"
_REPORTER: Final = "taint-eviction-controller"


def seconds_tolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> float | None:
    """For how many seconds all taints are tolerated; None for ever, 0 if one is not."""
    tolerations, limits = tuple(tolerations), []
    for taint in taints:
        fitting = [each for each in tolerations if tolerates((each,), taint)]
        if not fitting:
            return 0.0
        limits += [max(each.toleration_seconds, 0) for each in fitting if each.toleration_seconds is not None]
    return float(min(limits)) if limits else None


class TaintEviction:
    """Deletes pods whose node has a NoExecute taint that they do not tolerate, or no longer tolerate."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._pods = context.pods
        self._nodes = context.cache.collection(Node)
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._since: dict[str, float] = {}
        """Since when a pod tolerates what it does not tolerate for ever."""
        self._workers: Workers[str] = Workers("eviction by taints", context.clock, context.rng, self._attend)

    async def run(self) -> None:
        """Works until it is cancelled."""
        self._nodes.subscribe(self._node_changed)
        self._pods.subscribe(self._pod_changed)
        try:
            await self._workers.run()
        finally:
            self._pods.unsubscribe(self._pod_changed)
            self._nodes.unsubscribe(self._node_changed)

    def _node_changed(self, change: Change) -> None:
        name = change.newest.key.name
        taints = _executing(change.new.data) if change.new is not None else ()
        if taints == self._taints.get(name, ()):
            return
        if taints:
            self._taints[name] = taints
        else:
            self._taints.pop(name, None)
        for pod in self._pods.on_node(name):
            self._workers.queue.add(pod.uid)

    def _pod_changed(self, old: PodInfo | None, pod: PodInfo | None) -> None:
        known = pod or old
        if known is not None and (known.node in self._taints or known.uid in self._since):
            self._workers.queue.add(known.uid)

    async def _attend(self, uid: str) -> float | None:
        pod = self._pods.get(uid)
        tolerated = None
        if pod is not None and not (pod.is_deleting or pod.is_finished):
            tolerated = seconds_tolerated(self._taints.get(pod.node, ()), tolerations_of(pod.tolerations))
        if pod is None or tolerated is None:
            self._since.pop(uid, None)
            return None
        left = self._since.setdefault(uid, self._clock.monotonic()) + tolerated - self._clock.monotonic()
        if left > 0:
            return left
        await self._evict(pod)
        return None

    async def _evict(self, pod: PodInfo) -> None:
        note = f"Marking for deletion Pod {pod.key}"
        about = _reference(pod.key, uid=pod.uid)
        self._recorder.record(about, "TaintManagerEviction", note, controller=_REPORTER)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": self._clock.now().replace(microsecond=0),
        }
        patch = StrategicPatch({"status": {"conditions": [condition]}})
        only = Preconditions(uid=pod.uid)
        try:
            await self._client.patch(Pod, pod.key.name, patch, namespace=pod.namespace, subresource="status")
            await self._client.delete(Pod, pod.key.name, namespace=pod.namespace, preconditions=only)
        except NotFound:
            return


def _executing(data: bytes) -> tuple[Taint, ...]:
    try:
        return tuple(each for each in node_info(data).taints if each.effect == _NO_EXECUTE)
    except msgspec.DecodeError:
        return ()


def _reference(key: Key, *, uid: str) -> Dynamic:
    metadata = {"name": key.name, "namespace": key.namespace, "uid": uid}
    return Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
