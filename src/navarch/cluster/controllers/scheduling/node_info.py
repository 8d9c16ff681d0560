"""`NodeInfo`: the fields of a node that the scheduler needs, and the resources of the pods on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from navarch.cluster.controllers.pod_info import CPU, MEMORY, Amounts, HostPort, PodInfo, amounts
from navarch.k8s.core.v1 import Taint

_PODS: Final = "pods"
_ANY: Final = "0.0.0.0"  # noqa: S104 - as Kubernetes reads it
_SCORED: Final = (CPU, MEMORY)


class _NodeMetadata(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None


class _NodeSpecFields(msgspec.Struct):
    taints: list[Taint] | None = None
    unschedulable: bool = False


class _NodeStatusFields(msgspec.Struct):
    allocatable: dict[str, str | int | float] | None = None
    capacity: dict[str, str | int | float] | None = None


class _NodeFields(msgspec.Struct):
    metadata: _NodeMetadata
    spec: _NodeSpecFields = msgspec.field(default_factory=_NodeSpecFields)
    status: _NodeStatusFields = msgspec.field(default_factory=_NodeStatusFields)


_decoder = msgspec.json.Decoder(_NodeFields)


class NodeInfo(msgspec.Struct, frozen=True):
    """Labels, taints and capacity of a node. Equal ones accept the same pods."""

    name: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    is_unschedulable: bool
    allocatable: dict[str, int]


def node_info(data: bytes) -> NodeInfo:
    """The node that is in `data`; raises `msgspec.DecodeError`."""
    node = _decoder.decode(data)
    return NodeInfo(
        name=node.metadata.name,
        labels=node.metadata.labels or {},
        taints=tuple(node.spec.taints or ()),
        is_unschedulable=node.spec.unschedulable,
        allocatable=amounts(node.status.allocatable or node.status.capacity),
    )


class NodeState:
    """A node with its bound and assumed pods. `add` and `remove` update all sums."""

    __slots__ = ("_ports", "info", "most_pods", "name", "pods", "requested", "scored", "scores")

    def __init__(self, info: NodeInfo, pods: Iterable[PodInfo] = ()) -> None:
        self.info = info
        self.name = info.name
        self.most_pods = info.allocatable.get(_PODS, 0)
        self.pods: dict[str, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.scored: dict[str, int] = dict.fromkeys(_SCORED, 0)
        """What is asked for, with something for those who ask for nothing: only to compare nodes."""
        self.scores: dict[tuple[int, int], float] = {}
        """Scores that hold while nothing comes or goes, by what a pod asks for."""
        self._ports: dict[HostPort, int] = {}
        for pod in pods:
            self.add(pod)

    def add(self, pod: PodInfo) -> None:
        """A pod has come."""
        self.pods[pod.uid] = pod
        self._count(pod, 1)

    def remove(self, uid: str) -> PodInfo | None:
        """A pod is gone; the pod, if it was there."""
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self._count(pod, -1)
        return pod

    def _count(self, pod: PodInfo, sign: int) -> None:
        self.scores.clear()
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        for name in _SCORED:
            self.scored[name] += sign * pod.at_least.get(name, 0)
        for port in pod.ports:
            self._ports[port] = self._ports.get(port, 0) + sign
            if not self._ports[port]:
                del self._ports[port]

    def shortages(self, requests: Amounts) -> list[str]:
        """Why a pod that asks for this much does not fit; nothing if it does."""
        found = ["Too many pods"] if len(self.pods) + 1 > self.most_pods else []
        allocatable, requested = self.info.allocatable, self.requested
        for name, amount in requests.items():
            if amount > allocatable.get(name, 0) - requested.get(name, 0):
                found.append(f"Insufficient {name}")
        return found

    def has_room(self, requests: Amounts) -> bool:
        """Returns True if a pod that asks for this much fits."""
        return len(self.pods) < self.most_pods and not (requests and self.shortages(requests))

    def is_too_small(self, requests: Amounts) -> bool:
        """Returns True if a pod that asks for this much would not fit even if it were alone."""
        return any(amount > self.info.allocatable.get(name, 0) for name, amount in requests.items())

    def has_free(self, ports: Iterable[HostPort]) -> bool:
        """Returns True if nobody on the node has any of these ports, on the same address or on all of them."""
        return not any(
            protocol == taken_protocol
            and number == taken
            and (address == taken_address or _ANY in {address, taken_address})
            for address, protocol, number in ports
            for taken_address, taken_protocol, taken in self._ports
        )
