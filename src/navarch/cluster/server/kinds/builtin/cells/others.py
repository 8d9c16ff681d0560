"""The rows of the kinds outside the core group that run no pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.cells.age import UNKNOWN, Ages, human_duration
from navarch.cluster.server.kinds.builtin.cells.core import balancer_addresses
from navarch.cluster.server.kinds.builtin.cells.texts import NONE, UNSET, go_selector, joined, name, some
from navarch.cluster.server.wire.request import Json

__all__ = [
    "api_service_cells",
    "autoscaler_cells",
    "autoscaler_v1_cells",
    "binding_cells",
    "budget_cells",
    "csi_driver_cells",
    "flow_schema_cells",
    "ingress_cells",
    "ingress_class_cells",
    "ip_address_cells",
    "policy_binding_cells",
    "policy_cells",
    "priority_level_cells",
    "resource_claim_cells",
    "row",
    "signing_request_cells",
    "slice_cells",
]

_SHOWN_METRICS: Final = 2


def row(*parts: Callable[[Json], Any]) -> Callable[[Json, Ages], list[Any]]:
    """Name, what the parts say, age."""
    return lambda value, ages: [name(value), *(part(value) for part in parts), ages.of(value)]


def binding_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, role, age; users, groups, service accounts."""
    role = value.get("roleRef") or {}
    subjects = value.get("subjects") or ()
    users = [each.get("name", "") for each in subjects if each.get("kind") == "User"]
    groups = [each.get("name", "") for each in subjects if each.get("kind") == "Group"]
    accounts = [
        f"{each.get('namespace', '')}/{each.get('name', '')}"
        for each in subjects
        if each.get("kind") == "ServiceAccount"
    ]
    shown = (", ".join(each) for each in (users, groups, accounts))
    return [name(value), f"{role.get('kind', '')}/{role.get('name', '')}", ages.of(value), *shown]


def budget_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, least available, most unavailable, allowed disruptions, age."""
    spec = value["spec"]
    bounds = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name(value), *bounds, value.get("status", {}).get("disruptionsAllowed", 0), ages.of(value)]


def ingress_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, class, hosts, address, ports, age."""
    spec = value["spec"]
    hosts = [each["host"] for each in spec.get("rules") or () if each.get("host")]
    return [
        name(value),
        spec.get("ingressClassName") or NONE,
        some(hosts, "*"),
        joined(balancer_addresses(value)),
        "80, 443" if spec.get("tls") else "80",
        ages.of(value),
    ]


def ingress_class_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, controller, parameters, age."""
    parameters = value["spec"].get("parameters")
    shown = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [name(value), value["spec"].get("controller", ""), shown, ages.of(value)]


def ip_address_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, what it belongs to, age (for which the table has no column)."""
    parent = value["spec"].get("parentRef") or {}
    resource = (
        joined((parent.get("resource", ""), parent["group"])) if parent.get("group") else parent.get("resource", "")
    )
    place = "/".join(part for part in (parent.get("namespace"), parent.get("name")) if part)
    return [name(value), f"{resource.replace(',', '.')}/{place}", ages.of(value)]


def slice_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, address type, ports, endpoints, age."""
    ports = [_slice_port(each) for each in value.get("ports") or ()]
    addresses = [address for each in value.get("endpoints") or () for address in each.get("addresses") or ()]
    return [name(value), value.get("addressType", ""), some(ports, UNSET), some(addresses, UNSET), ages.of(value)]


def _slice_port(port: Json) -> str:
    return str(port["port"]) if port.get("port") is not None else port.get("name") or "*"


def autoscaler_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, reference, targets, least, most, replicas, age."""
    spec, status = value["spec"], value.get("status", {})
    measured = status.get("currentMetrics") or []
    shown = [
        _metric(each, measured[index] if index < len(measured) else {})
        for index, each in enumerate(spec.get("metrics") or ())
    ]
    more = len(shown) - _SHOWN_METRICS
    targets = ", ".join(shown[:_SHOWN_METRICS]) or NONE
    return _autoscaler(value, f"{targets} + {more} more..." if more > 0 else targets, ages)


def autoscaler_v1_cells(value: Json, ages: Ages) -> list[Any]:
    """The same for the first version, which knows no metric but the processor."""
    target, current = (
        value["spec"].get("targetCPUUtilizationPercentage"),
        value.get("status", {}).get("currentCPUUtilizationPercentage"),
    )
    measured = f"{current}%" if current is not None else UNKNOWN
    return _autoscaler(value, f"cpu: {measured}/{target}%" if target is not None else NONE, ages)


def _autoscaler(value: Json, targets: str, ages: Ages) -> list[Any]:
    spec, reference = value["spec"], value["spec"].get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        name(value),
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        targets,
        str(least) if least is not None else UNSET,
        spec.get("maxReplicas", 0),
        value.get("status", {}).get("currentReplicas", 0),
        ages.of(value),
    ]


_METRICS: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(spec: Json, status: Json) -> str:
    kind = spec.get("type", "")
    source = _METRICS.get(kind)
    if source is None:
        return "<unknown type>"
    target, current = (spec.get(source) or {}).get("target") or {}, (status.get(source) or {}).get("current") or {}
    if kind in {"Resource", "ContainerResource"}:
        return f"{spec[source].get('name', '')}: {_of_resource(target, current)}"
    if kind == "Pods":
        return f"{current.get('averageValue', UNKNOWN)}/{target.get('averageValue', '')}"
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', '')}"


def _of_resource(target: Json, current: Json) -> str:
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}"
    measured = f"{current['averageUtilization']}%" if "averageUtilization" in current else UNKNOWN
    wanted = f"{target['averageUtilization']}%" if "averageUtilization" in target else "<auto>"
    return f"{measured}/{wanted}"


def policy_cells(field: str) -> Callable[[Json, Ages], list[Any]]:
    """Name, how many of what it does, kind of its parameters, age."""
    return row(lambda value: len(value["spec"].get(field) or ()), _parameter_kind)


def _parameter_kind(value: Json) -> str:
    kind = value["spec"].get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def policy_binding_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, policy, parameters, age."""
    reference = value["spec"].get("paramRef")
    shown = UNSET
    if reference and reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference and reference.get("selector") is not None:
        shown = go_selector(reference["selector"])
    return [name(value), value["spec"].get("policyName", ""), shown, ages.of(value)]


def csi_driver_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, what it asks for, its modes, age."""
    spec = value["spec"]
    tokens = spec.get("tokenRequests")
    return [
        name(value),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if tokens is None else joined(each.get("audience", "") for each in tokens),
        spec.get("requiresRepublish", False),
        joined(spec.get("volumeLifecycleModes") or (), NONE),
        ages.of(value),
    ]


def signing_request_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, age, signer, requestor, duration, condition."""
    spec, status = value["spec"], value.get("status", {})
    seconds = spec.get("expirationSeconds")
    conditions = {each.get("type") for each in status.get("conditions") or ()}
    said = ["Denied" if "Denied" in conditions else "Approved" if "Approved" in conditions else "Pending"]
    said += ["Failed"] * ("Failed" in conditions) + ["Issued"] * bool(status.get("certificate"))
    asked = human_duration(seconds) if seconds is not None else NONE
    who = spec.get("username", "")
    return [name(value), ages.of(value), spec.get("signerName") or NONE, who, asked, joined(said)]


def flow_schema_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, level, precedence, distinguisher, age, whether its level is missing."""
    spec = value["spec"]
    conditions = value.get("status", {}).get("conditions") or ()
    missing = next((each.get("status", "") for each in conditions if each.get("type") == "Dangling"), "?")
    return [
        name(value),
        spec.get("priorityLevelConfiguration", {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", NONE),
        ages.of(value),
        missing,
    ]


def priority_level_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, type, shares, queues, hand size, length of queues, age."""
    limited = value["spec"].get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        name(value),
        value["spec"].get("type", ""),
        limited.get("nominalConcurrencyShares", NONE),
        *(queuing.get(field, NONE) for field in ("queues", "handSize", "queueLengthLimit")),
        ages.of(value),
    ]


def resource_claim_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, state, age."""
    status, deleted = value.get("status", {}), bool(value["metadata"].get("deletionTimestamp"))
    states = ["deleted"] * deleted
    if status.get("allocation") is None:
        states += ["pending"] * (not deleted)
    else:
        states += ["allocated"] + ["reserved"] * bool(status.get("reservedFor"))
    return [name(value), joined(states), ages.of(value)]


def api_service_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, service, availability, age."""
    service = value["spec"].get("service")
    shown = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    conditions = value.get("status", {}).get("conditions") or ()
    available = next((each for each in conditions if each.get("type") == "Available"), None)
    said = "Unknown" if available is None else available.get("status", "")
    if available is not None and said != "True":
        said = f"{said} ({available.get('reason', '')})"
    return [name(value), shown, said, ages.of(value)]
