"""The rows of the other kinds of the core group."""

from __future__ import annotations

from typing import Any, Final

from navarch.cluster.server.kinds.builtin.cells.age import UNKNOWN, Ages
from navarch.cluster.server.kinds.builtin.cells.texts import NONE, UNSET, joined, labels, name, some
from navarch.cluster.server.wire.request import Json

__all__ = [
    "claim_cells",
    "config_map_cells",
    "endpoints_cells",
    "event_cells",
    "events_v1_cells",
    "namespace_cells",
    "node_cells",
    "quota_cells",
    "secret_cells",
    "service_account_cells",
    "service_cells",
    "volume_cells",
]

_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def config_map_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, how many values, age."""
    return [name(value), len(value.get("data") or ()) + len(value.get("binaryData") or ()), ages.of(value)]


def secret_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, type, how many values, age."""
    return [name(value), value.get("type", ""), len(value.get("data") or ()), ages.of(value)]


def namespace_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, age."""
    return [name(value), value.get("status", {}).get("phase", ""), ages.of(value)]


def service_account_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, age."""
    return [name(value), ages.of(value)]


def service_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, type, cluster address, external address, ports, age; selector."""
    spec = value["spec"]
    return [
        name(value),
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external(value),
        joined((_port(each) for each in spec.get("ports") or ()), NONE),
        ages.of(value),
        labels(spec.get("selector")),
    ]


def _port(port: Json) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', '')}"


def _external(value: Json) -> str:
    spec, own = value["spec"], value["spec"].get("externalIPs") or ()
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return joined(own, NONE)
        case "LoadBalancer":
            given = balancer_addresses(value)
            return joined([*given, *own], "<pending>")
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return UNKNOWN


def balancer_addresses(value: Json) -> list[str]:
    """The addresses of its load balancer, sorted."""
    ingress = (value.get("status", {}).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({found for each in ingress if (found := each.get("ip") or each.get("hostname"))})


def endpoints_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, addresses with ports, age."""
    parts = [
        _address(address.get("ip", ""), port)
        for subset in value.get("subsets") or ()
        for port in subset.get("ports") or (None,)
        for address in subset.get("addresses") or ()
    ]
    empty = "" if value.get("subsets") else NONE
    return [name(value), some(parts, empty), ages.of(value)]


def _address(address: str, port: Json | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"


def node_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, roles, age, version; addresses, operating system, kernel, container runtime."""
    status = value.get("status", {})
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    machine = f" ({info['architecture']})" if info.get("architecture") else ""
    return [
        name(value),
        _node_status(value),
        joined(_roles(value), NONE),
        ages.of(value),
        info.get("kubeletVersion", ""),
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        f"{kernel}{machine}",
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(value: Json) -> str:
    conditions = {each.get("type"): each.get("status") for each in value.get("status", {}).get("conditions") or ()}
    ready = conditions.get("Ready")
    shown = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{shown},SchedulingDisabled" if value.get("spec", {}).get("unschedulable") else shown


def _roles(value: Json) -> list[str]:
    found = value["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in found if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {found.get("kubernetes.io/role", "")}) - {""})


def _node_address(status: Json, kind: str) -> str:
    return next((each["address"] for each in status.get("addresses") or () if each.get("type") == kind), NONE)


def claim_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, volume, capacity, access modes, class, attributes class, age; mode."""
    spec, status, metadata = value["spec"], value.get("status", {}), value["metadata"]
    volume = spec.get("volumeName", "")
    old_class = (metadata.get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return [
        name(value),
        "Terminating" if metadata.get("deletionTimestamp") else status.get("phase", ""),
        volume,
        (status.get("capacity") or {}).get("storage", "0") if volume else "",
        modes(status.get("accessModes")) if volume else "",
        old_class if old_class is not None else spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        ages.of(value),
        spec.get("volumeMode") or UNSET,
    ]


def modes(found: list[str] | None) -> str:
    """Access modes in short, in Kubernetes' order."""
    return joined(short for mode, short in _MODES.items() if mode in (found or ()))


def volume_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, capacity, access modes, reclaim policy, status, claim, class, attributes class, reason, age; mode."""
    spec, status = value["spec"], value.get("status", {})
    claim = spec.get("claimRef")
    return [
        name(value),
        (spec.get("capacity") or {}).get("storage", "0"),
        modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if value["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        ages.of(value),
        spec.get("volumeMode") or UNSET,
    ]


def quota_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, what is used of requests, what is used of limits, age."""
    status = value.get("status", {})
    used = status.get("used") or {}
    shown = {key: f"{key}: {used.get(key, '0')}/{hard}" for key, hard in sorted((status.get("hard") or {}).items())}
    requests = [text for key, text in shown.items() if not key.startswith("limits.")]
    limits = [text for key, text in shown.items() if key.startswith("limits.")]
    return [name(value), ", ".join(requests), ", ".join(limits), ages.of(value)]


def event_cells(value: Json, ages: Ages) -> list[Any]:
    """Last seen, type, reason, object, message; subobject, source, first seen, count, name."""
    source = value.get("source") or {}
    component = source.get("component") or value.get("reportingComponent") or ""
    instance = source.get("host") or value.get("reportingInstance") or ""
    first = ages.since(value.get("firstTimestamp") or value.get("eventTime"))
    last = ages.since(value["lastTimestamp"]) if value.get("lastTimestamp") else first
    count = value.get("count") or 1
    if (series := value.get("series")) is not None:
        last, count = ages.since(series.get("lastObservedTime")), series.get("count", 0)
    about = value.get("involvedObject") or {}
    return [
        last,
        value.get("type", ""),
        value.get("reason", ""),
        _about(about),
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        value.get("message", "").strip(),
        first,
        count,
        name(value),
    ]


def _about(about: Json) -> str:
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


_OLD_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}


def events_v1_cells(value: Json, ages: Ages) -> list[Any]:
    """The same for an event of `events.k8s.io`."""
    return event_cells({_OLD_NAMES.get(key, key): part for key, part in value.items()}, ages)
