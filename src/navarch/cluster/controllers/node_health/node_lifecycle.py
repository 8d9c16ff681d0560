"""Node lifecycle: taints a node that is silent or not ready, and marks its pods not ready."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from navarch.api import Key
from navarch.cache import Cached, Entry
from navarch.cache.lookup import Lookup
from navarch.client import StrategicPatch
from navarch.cluster.controllers.controller_context import ControllerContext, PodIndex
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.declaration import Declared
from navarch.controller.triggers import ByMetadata, any_change
from navarch.errors import NotFound
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import Node, NodeCondition, Pod, Taint
from navarch.operator import Operator

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_BY_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OWN: Final = frozenset({*_BY_CONDITION.values(), _UNSCHEDULABLE})
_REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_NO_SCHEDULE: Final = "NoSchedule"
_NO_EXECUTE: Final = "NoExecute"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """Time limits of node health, in seconds.

    Nodes are looked at every so often (`look`). One that was silent for so long (`silence`), or has not reported at all
    since it came (`startup`), is lost. Pods that nobody looks after are looked for every so often (`sweep`); those of a
    node that is gone go after `quarantine`. Of pods that have ended, so many are kept.
    """

    look: float = 5.0
    silence: float = 50.0
    startup: float = 60.0
    sweep: float = 20.0
    quarantine: float = 40.0
    most_ended: int = 12500


def ready_status(node: Node) -> str:
    """`True`, `False` or `Unknown`; empty if the node has never said."""
    return next((each.status for each in node.status.conditions or () if each.type == "Ready"), "")


def is_ready(node: Node) -> bool:
    """Returns True if the node says that it is."""
    return ready_status(node) == "True"


def silent(node: Node, now: datetime) -> list[NodeCondition]:
    """The conditions of a node that has not been heard of for too long: nothing is known of what it reported."""
    known = {each.type: each for each in node.status.conditions or ()}
    for type_ in _REPORTED:
        old = known.get(type_)
        if old is None:
            known[type_] = NodeCondition(
                type=type_,
                status="Unknown",
                reason="NodeStatusNeverUpdated",
                message="Kubelet never posted node status.",
                last_heartbeat_time=node.metadata.creation_timestamp,
                last_transition_time=now,
            )
        elif old.status != "Unknown":
            known[type_] = NodeCondition(
                type=type_,
                status="Unknown",
                reason="NodeStatusUnknown",
                message="Kubelet stopped posting node status.",
                last_heartbeat_time=old.last_heartbeat_time,
                last_transition_time=now,
            )
    return list(known.values())


def tainted(node: Node, now: datetime, *, evicts: bool) -> list[Taint]:
    """The taints that the node should have: those of others, and those that follow from its conditions.

    With `evicts`, pods that do not tolerate that a node is not ready are to leave it.
    """
    before = node.spec.taints or []
    wanted = [(_UNSCHEDULABLE, _NO_SCHEDULE)] if node.spec.unschedulable else []
    for condition in node.status.conditions or ():
        if (key := _BY_CONDITION.get((condition.type, condition.status))) is not None:
            wanted.append((key, _NO_SCHEDULE))
            if evicts and key in {NOT_READY, UNREACHABLE}:
                wanted.append((key, _NO_EXECUTE))
    if not ready_status(node):
        wanted.append((NOT_READY, _NO_SCHEDULE))
    kept = [each for each in before if not _is_own(each) or (each.key, each.effect) in wanted]
    present = {(each.key, each.effect) for each in kept}
    return [*kept, *_new((each for each in wanted if each not in present), now)]


def _is_own(taint: Taint) -> bool:
    return taint.key in _OWN and taint.effect in {_NO_SCHEDULE, _NO_EXECUTE}


def _new(wanted: Iterable[tuple[str, str]], now: datetime) -> Iterable[Taint]:
    return [Taint(key=key, effect=effect, time_added=now) for key, effect in wanted]


Lifecycle = Declared[Node, Coroutine[Any, Any, Result | None]]

_LEASES: Final = Cached(Lease, namespaces=("kube-node-lease",))


class NodeMonitor:
    """Triggers the controller for every node every few seconds, since silence causes no event."""

    def __init__(self, context: ControllerContext, lifecycle: Lifecycle, options: HealthOptions) -> None:
        self._clock = context.clock.liveness
        self._nodes = context.cache.collection(Node)
        self._lifecycle = lifecycle
        self._options = options

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self._clock.sleep(self._options.look)
            for entry in self._nodes.entries():
                self._lifecycle.trigger(entry.key.name, reason="it is looked at every few seconds")


def declare_node_lifecycle(operator: Operator, pods: PodIndex, options: HealthOptions) -> Lifecycle:
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


async def _unready(node: Node, ctx: Context, pods: PodIndex) -> None:
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
