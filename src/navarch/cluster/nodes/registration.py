"""A node's own object: what it says of itself when it joins the cluster."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from navarch.api import Quantity, to_builtins
from navarch.client import Client, StrategicPatch
from navarch.errors import AlreadyExists
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

__all__ = ["RUNTIME", "Profile", "conditions", "machine_capacity", "node_object", "register"]

KUBELET_VERSION = "v1.36.4"
RUNTIME = "navarch://1"
"""What process nodes call that which runs their containers."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_PODS = 110
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a node says of itself. `capacity` is the machine's own by default; all of it may be used by pods.

    `labels` and `annotations` come on top of those that every node has.
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
    """What this machine has."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    disk = os.statvfs("/")
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{pages // 1024}Ki",
        "ephemeral-storage": f"{disk.f_blocks * disk.f_frsize // 1024}Ki",
        "pods": str(_PODS),
    }


def node_object(profile: Profile, now: datetime) -> Node:
    """The whole object, ready, as of now."""
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
    """That all is well, as of now."""
    return [
        NodeCondition(
            type=kind, status=status, reason=reason, message=message, last_heartbeat_time=now, last_transition_time=now
        )
        for kind, status, reason, message in _CONDITIONS
    ]


async def register(client: Client, node: Node) -> Node:
    """Creates the node or, if it is known, brings what it says of itself up to date; what others set on it stays."""
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
