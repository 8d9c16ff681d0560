"""Registers the Node object of a node, renews its Lease every ten seconds and its conditions every five minutes."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from navarch._base.clock import Clock
from navarch.api import MicroTime, OwnerReference, Quantity, to_builtins
from navarch.client import Client, StrategicPatch
from navarch.errors import AlreadyExists, Conflict, NavarchError, NotFound
from navarch.k8s.coordination.v1 import Lease, LeaseSpec
from navarch.k8s.core.v1 import (
    ContainerImage,
    Node,
    NodeAddress,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)

LEASES: Final = "kube-node-lease"
_RENEWAL_SECONDS: Final = 10.0
_LEASE_SECONDS: Final = 40
_STATUS_SECONDS: Final = 300.0
_log = logging.getLogger("navarch.nodes")
KUBELET_VERSION = "v1.36.4"
RUNTIME = "navarch://1"
"""The `containerRuntimeVersion` of process nodes."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_PODS = 110
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class Heartbeat:
    """Renews the Lease and the conditions of one node. The lease expires 40 seconds after the last renewal."""

    def __init__(self, client: Client, node: Node, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._clock = clock.liveness
        self._lease: Lease | None = None
        self._said_at = self._clock.monotonic()

    async def run(self) -> None:
        """Renews until it is cancelled; a failed renewal is retried at the next one."""
        while True:
            try:
                await self.beat()
            except NavarchError as error:
                _log.warning("heartbeat of node %s failed: %s; retrying in 10 s", self._node.name, error)
            await self._clock.sleep(_RENEWAL_SECONDS)

    async def beat(self) -> None:
        """Renews the Lease once and, every five minutes, the conditions."""
        try:
            self._lease = await self._renewed()
        except (Conflict, AlreadyExists, NotFound):
            self._lease = await self._found()
            self._lease = await self._renewed()
        if self._clock.monotonic() - self._said_at >= _STATUS_SECONDS:
            await self._say_conditions()

    async def _found(self) -> Lease | None:
        try:
            return await self._client.get(Lease, self._node.name, namespace=LEASES)
        except NotFound:
            return None

    async def _renewed(self) -> Lease:
        now = MicroTime.of(self._clock.now())
        if self._lease is None:
            return await self._client.create(self._first(now))
        self._lease.spec.holder_identity = self._node.name
        self._lease.spec.lease_duration_seconds = _LEASE_SECONDS
        self._lease.spec.renew_time = now
        return await self._client.replace(self._lease)

    def _first(self, now: MicroTime) -> Lease:
        spec = LeaseSpec(holder_identity=self._node.name, lease_duration_seconds=_LEASE_SECONDS, renew_time=now)
        lease = Lease(name=self._node.name, namespace=LEASES, spec=spec)
        owner = OwnerReference(api_version="v1", kind="Node", name=self._node.name, uid=self._node.metadata.uid)
        lease.metadata.owner_references = [owner]
        return lease

    async def _say_conditions(self) -> None:
        """Writes the conditions; a condition with the same status keeps its transition time."""
        said = [to_builtins(condition) for condition in conditions(self._clock.now())]
        known = {known.type: known for known in (self._node.status.conditions or [])}
        for condition in said:
            if known.get(condition["type"]) and known[condition["type"]].status == condition["status"]:
                del condition["lastTransitionTime"]
        patch = StrategicPatch({"status": {"conditions": said}})
        self._node = await self._client.patch(Node, self._node.name, patch, subresource="status")
        self._said_at = self._clock.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The properties of a node. `capacity` defaults to the machine's; pods may use all of it.

    `labels` and `annotations` are added to those of every node.
    """

    name: str
    address: str = "127.0.0.1"
    runtime: str = RUNTIME
    capacity: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    images: tuple[str, ...] = ()


def machine_capacity() -> dict[str, str]:
    """Returns the capacity of this machine."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    disk = os.statvfs("/")
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{pages // 1024}Ki",
        "ephemeral-storage": f"{disk.f_blocks * disk.f_frsize // 1024}Ki",
        "pods": str(_PODS),
    }


def node_object(profile: Profile, now: datetime) -> Node:
    """Returns the Node object, ready at that time."""
    system, architecture = "linux", _ARCHITECTURES.get(platform.machine(), platform.machine())
    labels = {"kubernetes.io/hostname": profile.name, "kubernetes.io/os": system, "kubernetes.io/arch": architecture}
    labels |= {f"beta.{label}": value for label, value in labels.items() if not label.endswith("hostname")}
    return Node(
        name=profile.name,
        labels={**labels, **profile.labels},
        annotations=dict(profile.annotations),
        spec=NodeSpec(taints=list(profile.taints) or None),
        status=_status(profile, system, architecture, now),
    )


def _status(profile: Profile, system: str, architecture: str, now: datetime) -> NodeStatus:
    capacity = {name: Quantity(text) for name, text in (machine_capacity() | dict(profile.capacity)).items()}
    return NodeStatus(
        capacity=capacity,
        allocatable=capacity,
        conditions=conditions(now),
        addresses=[
            NodeAddress(type="InternalIP", address=profile.address),
            NodeAddress(type="Hostname", address=profile.name),
        ],
        images=[ContainerImage(names=[name]) for name in profile.images] or None,
        node_info=_info(profile, system, architecture),
    )


def _info(profile: Profile, system: str, architecture: str) -> NodeSystemInfo:
    return NodeSystemInfo(
        machine_id=profile.name,
        system_uuid=profile.name,
        boot_id=profile.name,
        kernel_version=platform.release(),
        os_image="Navarch",
        container_runtime_version=profile.runtime,
        kubelet_version=KUBELET_VERSION,
        kube_proxy_version="",
        operating_system=system,
        architecture=architecture,
    )


def conditions(now: datetime) -> list[NodeCondition]:
    """Returns the conditions of a healthy node at that time."""
    return [
        NodeCondition(
            type=kind, status=status, reason=reason, message=message, last_heartbeat_time=now, last_transition_time=now
        )
        for kind, status, reason, message in _CONDITIONS
    ]


async def register(client: Client, node: Node) -> Node:
    """Creates the Node or updates its own labels, annotations and status; fields of others stay."""
    try:
        await client.create(node)
    except AlreadyExists:
        metadata = {"labels": dict(node.labels), "annotations": dict(node.annotations)}
        await client.patch(Node, node.name, StrategicPatch({"metadata": metadata}))
    return await client.patch(Node, node.name, StrategicPatch(_status_patch(node)), subresource="status")


def _status_patch(node: Node) -> dict[str, Any]:
    status = to_builtins(node.status)
    status["addresses"] = [*status["addresses"], {"$patch": "replace"}]
    return {"status": status}
