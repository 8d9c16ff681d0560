"""What field selectors may name, and how long a deletion waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from navarch.cluster.server.wire.request import Json

__all__ = [
    "event_fields",
    "events_v1_fields",
    "job_fields",
    "namespace_fields",
    "node_fields",
    "pod_fields",
    "pod_grace_seconds",
    "replication_controller_fields",
    "secret_fields",
    "service_fields",
    "signing_request_fields",
]

_POD_SPEC: Final = ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName")
_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_GRACE_SECONDS: Final = 30

Fields = Callable[[Json], Mapping[str, str]]


def _fields(*paths: str, default: str = "") -> Fields:
    split = [(path, path.split(".")) for path in paths]
    return lambda value: {path: _text(value, steps, default) for path, steps in split}


def _text(value: Any, steps: list[str], default: str) -> str:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return default if value is None else str(value)


def pod_fields(value: Json) -> Mapping[str, str]:
    """Where a pod runs, how, and how it does."""
    spec, status = value.get("spec") or {}, value.get("status") or {}
    addresses = [each.get("ip", "") for each in status.get("podIPs") or ()]
    return {
        **{f"spec.{name}": spec.get(name) or "" for name in _POD_SPEC},
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": addresses[0] if addresses else "",
        "status.podIPs": ",".join(addresses),
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


def pod_grace_seconds(value: Json, asked: int | None) -> int:
    """What was asked for, else what the pod says; nothing if no node has to stop it."""
    spec = value.get("spec") or {}
    if not spec.get("nodeName") or (value.get("status") or {}).get("phase") in _ENDED:
        return 0
    own = spec.get("terminationGracePeriodSeconds")
    seconds: int = asked if asked is not None else _GRACE_SECONDS if own is None else own
    return seconds if seconds >= 0 else 1


def event_fields(value: Json) -> Mapping[str, str]:
    """What an event is about, and what happened; it may be stored in the other group's shape."""
    about = value.get("involvedObject") or value.get("regarding") or {}
    component = value.get("reportingComponent") or value.get("reportingController") or ""
    source = value.get("source") or value.get("deprecatedSource") or {}
    return {
        **{f"involvedObject.{name}": about.get(name) or "" for name in _ABOUT},
        "reason": value.get("reason") or "",
        "reportingComponent": component,
        "source": source.get("component") or component,
        "type": value.get("type") or "",
    }


def events_v1_fields(value: Json) -> Mapping[str, str]:
    """The same for an event of `events.k8s.io`."""
    about = value.get("regarding") or value.get("involvedObject") or {}
    return {
        **{f"regarding.{name}": about.get(name) or "" for name in _ABOUT},
        "reason": value.get("reason") or "",
        "reportingController": value.get("reportingController") or value.get("reportingComponent") or "",
        "type": value.get("type") or "",
    }


def job_fields(value: Json) -> Mapping[str, str]:
    """How many of its pods have succeeded."""
    return {"status.successful": str((value.get("status") or {}).get("succeeded", 0))}


namespace_fields: Final = _fields("status.phase")
node_fields: Final = _fields("spec.unschedulable", default="false")
replication_controller_fields: Final = _fields("status.replicas", default="0")
secret_fields: Final = _fields("type")
service_fields: Final = _fields("spec.clusterIP", "spec.type")
signing_request_fields: Final = _fields("spec.signerName")
