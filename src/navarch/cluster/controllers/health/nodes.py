"""Watches over nodes: one that falls silent, or says that it is not ready, is tainted, and its pods are not ready."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, Final

from navarch.api import Key
from navarch.cache import Cached, Entry
from navarch.client import StrategicPatch
from navarch.cluster.controllers.health.conditions import HealthOptions, is_ready, ready_status, silent, tainted
from navarch.cluster.controllers.parts import Around
from navarch.cluster.controllers.podbook import PodBook
from navarch.controller.cache_reader import Lookup
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.declaration import Declared
from navarch.controller.triggers import ByMetadata, any_change
from navarch.errors import NotFound
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import Node, Pod
from navarch.operator import Operator

__all__ = ["NodeMonitor", "declare"]

Lifecycle = Declared[Node, Coroutine[Any, Any, Result | None]]

_LEASES: Final = Cached(Lease, namespaces=("kube-node-lease",))


class NodeMonitor:
    """Triggers the controller for every node, every few seconds: that a node is silent is no event."""

    def __init__(self, around: Around, lifecycle: Lifecycle, options: HealthOptions) -> None:
        self._clock = around.clock.liveness
        self._nodes = around.cache.collection(Node)
        self._lifecycle = lifecycle
        self._options = options

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self._clock.sleep(self._options.look)
            for entry in self._nodes.entries():
                self._lifecycle.trigger(entry.key.name, reason="it is looked at every few seconds")


def declare(operator: Operator, pods: PodBook, options: HealthOptions) -> Lifecycle:
    """Adds the controller. A node is heard of when its lease is renewed or its heartbeats move on, by our own clock."""
    heard: dict[str, tuple[str, float]] = {}

    @operator.controller(Node, watches={_LEASES: ByMetadata(_node_of)}, when=any_change, name="node-lifecycle")
    async def watch_over(node: Node, ctx: Context) -> Result | None:
        left = _patience(node, await ctx.get(Lease, node.name, namespace="kube-node-lease"), ctx)
        if left <= 0:
            if ready_status(node) != "Unknown":
                ctx.event("NodeNotReady", f"Node {node.name} status is now: NodeNotReady")
            node.status.conditions = silent(node, ctx.now().replace(microsecond=0))
        await _taint(node, ctx)
        if ready_status(node) == "Unknown":  # otherwise its kubelet is there, and says it itself
            await _unready(node, ctx, pods)
        return Result(after=left) if 0 < left < options.look else None

    def _patience(node: Node, lease: Lease | None, ctx: Context) -> float:
        """For how many more seconds nothing need be heard of the node."""
        now = ctx.client.clock.liveness.monotonic()
        sign = _sign_of_life(node, lease)
        known = heard.get(node.metadata.uid)
        if known is None or known[0] != sign:
            known = heard[node.metadata.uid] = (sign, now)
        allowed = options.silence if node.status.conditions else options.startup
        return known[1] + allowed - now

    return watch_over


def _sign_of_life(node: Node, lease: Lease | None) -> str:
    """Changes whenever the node says something."""
    beats = [str(each.last_heartbeat_time) for each in node.status.conditions or ()]
    return f"{lease.spec.renew_time if lease is not None else ''} {beats}"


async def _taint(node: Node, ctx: Context) -> None:
    """While no node at all is ready, the fault is more likely on this side: nobody is to leave."""
    evicts = is_ready(node) or any(is_ready(each) for each in await ctx.list(Node) if each.name != node.name)
    wanted = tainted(node, ctx.now().replace(microsecond=0), evicts=evicts)
    if wanted != (node.spec.taints or []):
        written = await ctx.patch(node, {"spec": {"taints": wanted or None}})
        node.metadata.resource_version = written.metadata.resource_version


async def _unready(node: Node, ctx: Context, pods: PodBook) -> None:
    """Pods of a node that is lost are not ready, whatever they said last."""
    for info in pods.on_node(node.name):
        entry = pods.collection.entry(info.key)
        pod = pods.collection.view(entry) if entry is not None else None
        ready = next((each for each in (pod.status.conditions or ()) if each.type == "Ready"), None) if pod else None
        if pod is None or ready is None or ready.status != "True":
            continue
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": ctx.now().replace(microsecond=0)}
        patch = StrategicPatch({"status": {"conditions": [condition]}})
        try:
            await ctx.client.patch(Pod, pod.name, patch, namespace=pod.namespace, subresource="status")
        except NotFound:
            continue
        ctx.event("NodeNotReady", "Node is not ready", type="Warning", regarding=pod)


def _node_of(lease: Entry, lookup: Lookup) -> Iterable[Key]:  # noqa: ARG001 - the form of a mapping
    return (Key("", lease.key.name),)
