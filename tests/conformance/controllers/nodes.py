"""Nodes on paper: they say that they are ready, and nothing runs on them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from conformance.controllers.watching import until
from navarch._base.clock import SystemClock
from navarch.api import ObjectMeta, format_time
from navarch.client import Client, MergePatch
from navarch.k8s.core.v1 import Node, NodeSpec, Pod, Taint

_numbers = itertools.count(1)
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


class Nodes:
    """The nodes of one test, and all that there are."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock = SystemClock()
        self.names: list[str] = []

    async def add(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        taints: list[Taint] | None = None,
        room: Mapping[str, str] | None = None,
        unschedulable: bool | None = None,
    ) -> str:
        """A node that is ready, and untainted but for `taints`; its name."""
        name = f"node-{next(_numbers)}"
        metadata = ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **(labels or {})})
        await self._client.create(Node(metadata=metadata, spec=NodeSpec(taints=taints, unschedulable=unschedulable)))
        self.names.append(name)
        await self.report(name, allocatable={**ROOM, **(room or {})}, capacity={**ROOM, **(room or {})})
        await until(lambda: self._client.get(Node, name), _is_untainted, f"{name} to be without the taint not-ready")
        return name

    async def report(self, name: str, *, ready: str = "True", **status: Any) -> None:
        """What a kubelet would say of its node."""
        now = format_time(self._clock.now())
        ready_condition = {
            "type": "Ready",
            "status": ready,
            "reason": "KubeletReady",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        patch = MergePatch({"status": {"conditions": [ready_condition], **status}})
        await self._client.patch(Node, name, patch, subresource="status")

    async def remove(self, name: str) -> None:
        """The node is no more."""
        self.names.remove(name)
        await self._client.delete(Node, name)


def _is_untainted(node: Node) -> bool:
    return not any(taint.key == "node.kubernetes.io/not-ready" for taint in node.spec.taints or ())


@asynccontextmanager
async def some_nodes(client: Client) -> AsyncIterator[Nodes]:
    """Nodes that go with the block, after the pods of the client's namespace, which nobody else would end."""
    nodes = Nodes(client)
    try:
        yield nodes
    finally:
        await client.delete_all(Pod, grace_seconds=0)
        for name in tuple(nodes.names):
            await nodes.remove(name)
