"""`PodGarbageCollector`: deletes pods of missing nodes, terminating pods without a node, and old finished pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.api import Key
from navarch.client import Preconditions, StrategicPatch
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.node_health.node_lifecycle import OUT_OF_SERVICE, HealthOptions, is_ready
from navarch.cluster.controllers.pod_info import PodInfo
from navarch.errors import NavarchError, NotFound
from navarch.k8s.core.v1 import Node, Pod

_GONE: Final = "PodGC: node no longer exists"


class PodGarbageCollector:
    """Force-deletes orphaned, terminating and old finished pods, every few seconds."""

    def __init__(self, context: ControllerContext, options: HealthOptions) -> None:
        self._client = context.client
        self._clock = context.clock.liveness
        self._pods = context.pods
        self._nodes = context.cache.collection(Node)
        self._options = options
        self._missed: dict[str, float] = {}

    async def run(self) -> None:
        """Sweeps until it is cancelled."""
        while True:
            for pod, why in [*self._forsaken(), *self._ended()]:
                await self._remove(pod, why)
            await self._clock.sleep(self._options.sweep)

    def _forsaken(self) -> Iterator[tuple[PodInfo, str]]:
        gone = self._gone_for_long()
        for pod in self._pods.all():
            if pod.node in gone:
                yield pod, _GONE
            elif pod.is_deleting and (not pod.node or self._is_out_of_service(pod.node)):
                yield pod, ""

    def _gone_for_long(self) -> set[str]:
        """Nodes that pods name and that have not been there for a while."""
        named = {pod.node for pod in self._pods.all() if pod.node}
        now, missing = self._clock.monotonic(), {name for name in named if self._nodes.entry(Key("", name)) is None}
        self._missed = {name: self._missed.get(name, now) for name in missing}
        return {name for name, since in self._missed.items() if now - since >= self._options.quarantine}

    def _is_out_of_service(self, name: str) -> bool:
        entry = self._nodes.entry(Key("", name))
        if entry is None:
            return False
        node = self._nodes.view(entry)
        return not is_ready(node) and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints or ())

    def _ended(self) -> Iterator[tuple[PodInfo, str]]:
        """Those beyond the most that are kept, the oldest first."""
        ended = sorted((pod for pod in self._pods.all() if pod.is_finished), key=lambda pod: pod.created)
        for pod in ended[: max(len(ended) - self._options.most_ended, 0)]:
            yield pod, ""

    async def _remove(self, pod: PodInfo, why: str) -> None:
        """A pod that was disrupted has failed, and says why."""
        try:
            if why and await self._is_there(pod.node):
                return
            if why and not pod.is_finished:
                await self._fail(pod, why)
            only = Preconditions(uid=pod.uid)
            await self._client.delete(Pod, pod.key.name, namespace=pod.namespace, grace_seconds=0, preconditions=only)
        except NavarchError:
            return  # the next sweep looks at it again

    async def _is_there(self, name: str) -> bool:
        """The cache may be late."""
        try:
            await self._client.get(Node, name)
        except NotFound:
            return False
        return True

    async def _fail(self, pod: PodInfo, why: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": why,
            "lastTransitionTime": self._clock.now().replace(microsecond=0),
        }
        patch = StrategicPatch({"status": {"phase": "Failed", "conditions": [condition]}})
        await self._client.patch(Pod, pod.key.name, patch, namespace=pod.namespace, subresource="status")
