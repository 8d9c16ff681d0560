"""A kubelet on paper: it says of pods what a node would, without running anything."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

from navarch._base.clock import SystemClock
from navarch.api import format_time
from navarch.client import Client, MergePatch, Preconditions
from navarch.errors import ApiError, DecodeError
from navarch.k8s.core.v1 import Binding, ObjectReference, Pod

_LOOK_SECONDS = 0.02


def _nothing(_: Pod) -> bool:
    return False


class Kubelet:
    """Brings every pod of one namespace to Running and Ready, and ends those that are to go.

    `holds` says which pods are left alone as they are; with `node` they are put on a node of that name first, and then end
    only when the kubelet says so, or when it `keeps` them no longer. The node is not there: pods of such a node are deleted
    after 40 s, so that each test needs one of its own. `places` says where else a pod is put.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock = SystemClock()
        self._stopping = False
        self.node = ""
        self.places: Callable[[Pod], str] = self._own_node
        self.holds: Callable[[Pod], bool] = _nothing
        self.keeps: Callable[[Pod], bool] = _nothing

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Works while the block lasts, and finishes what it is at."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run(), name="kubelet")
            try:
                yield self
            finally:
                self._stopping = True

    async def _run(self) -> None:
        while not self._stopping:
            async for pod in self._client.list(Pod):
                with contextlib.suppress(ApiError):  # somebody else was faster; it is looked at again
                    await self._look_at(pod)
            await self._clock.sleep(_LOOK_SECONDS)

    async def _look_at(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            if not self.keeps(pod):
                await self.end(pod)
        elif (pod.status.phase or "Pending") == "Pending" and not self.holds(pod):
            node = self.places(pod)
            if node and not pod.spec.node_name:
                await self._place(pod, node)
            else:
                await self._start_if_same(pod)

    def _own_node(self, _: Pod) -> str:
        return f"{self.node}-{self._client.options.namespace}" if self.node else ""

    async def _place(self, pod: Pod, node: str) -> None:
        binding = Binding(name=pod.name, target=ObjectReference(kind="Node", name=node))
        with contextlib.suppress(DecodeError):  # it is answered with a Status
            await self._client.create_subresource(Pod, pod.name, "binding", binding)

    async def _start_if_same(self, pod: Pod) -> None:
        """A test may have had its own plans for the pod meanwhile."""
        changes = {"status": self._running(ready=True), "metadata": {"resourceVersion": pod.metadata.resource_version}}
        await self._client.patch(Pod, pod.name, MergePatch(changes), subresource="status")

    def _running(self, *, ready: bool) -> dict[str, Any]:
        now = format_time(self._clock.now())
        conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}]
        return {"phase": "Running", "startTime": now, "conditions": conditions}

    async def start(self, pod: Pod, *, ready: bool = True) -> None:
        """It runs."""
        await self._tell(pod, self._running(ready=ready))

    async def finish(self, pod: Pod, *, code: int = 0, **more: Any) -> None:
        """Its container ends with that code, for good."""
        now = format_time(self._clock.now())
        terminated = {
            "exitCode": code,
            "startedAt": now,
            "finishedAt": now,
            "reason": "Completed" if not code else "Error",
        }
        container = {
            "name": pod.spec.containers[0].name,
            "image": "",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": terminated},
        }
        conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": now}, *more.pop("conditions", [])]
        status = {
            "phase": "Failed" if code else "Succeeded",
            "conditions": conditions,
            "containerStatuses": [container],
        }
        await self._tell(pod, {**status, **more})

    async def _tell(self, pod: Pod, status: dict[str, Any]) -> None:
        await self._client.patch(Pod, pod.name, MergePatch({"status": status}), subresource="status")

    async def end(self, pod: Pod) -> None:
        """Its containers are gone: so is the pod, as far as the node is concerned."""
        only = Preconditions(uid=pod.metadata.uid)
        await self._client.delete(Pod, pod.name, grace_seconds=0, preconditions=only)
