"""Rules of Nodes, Leases, PriorityClasses, RuntimeClasses and resource claims."""

from __future__ import annotations

from typing import Any, Final

from navarch.cluster.server.kinds.builtin.generic.columns import (
    NONE,
    UNKNOWN,
    Ages,
    field_of,
    joined,
    name_of,
    row,
    selectable,
)
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules
from navarch.cluster.server.kinds.builtin.nodes.checks import (
    check_lease,
    check_node,
    check_node_status,
    check_node_update,
    check_priority_class,
    check_priority_class_update,
    check_runtime_class,
    check_runtime_class_update,
)
from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.request import Json


def default_node(value: Json) -> None:
    """A Node."""
    spec, status = value["spec"], value["status"]
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not ranges or ranges[0] != first):
        ranges = spec["podCIDRs"] = [first]
    if ranges:
        spec["podCIDR"] = ranges[0]
    if status.get("capacity"):
        status.setdefault("allocatable", {**status["capacity"]})


def default_priority_class(value: Json) -> None:
    """A PriorityClass."""
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_claim(value: Json) -> None:
    """A ResourceClaim."""
    _default_device_requests(value["spec"])


def default_claim_template(value: Json) -> None:
    """A ResourceClaimTemplate."""
    _default_device_requests(value["spec"]["spec"])


def _default_device_requests(spec: Json) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for wanted in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if wanted is not None and wanted.setdefault("allocationMode", "ExactCount") == "ExactCount":
                wanted.setdefault("count", 1)


_COORDINATED: Final = ("strategy", "preferredHolder")


def begin_generation(value: Json, _: Operation) -> None:
    """The first generation, which is the last one of kinds that do not count."""
    value["metadata"]["generation"] = 1


def create_lease(value: Json, _: Operation) -> None:
    """Nobody else decides who holds a lease: that is switched off."""
    for name in _COORDINATED:
        value["spec"].pop(name, None)


def update_lease(value: Json, _old: Json, operation: Operation) -> None:
    """Nobody else decides who holds a lease: that is switched off."""
    create_lease(value, operation)


_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def node_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, roles, age, version; addresses, operating system, kernel, container runtime."""
    status = value.get("status", {})
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    machine = f" ({info['architecture']})" if info.get("architecture") else ""
    return [
        name_of(value),
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


def resource_claim_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, state, age."""
    status, deleted = value.get("status", {}), bool(value["metadata"].get("deletionTimestamp"))
    states = ["deleted"] * deleted
    if status.get("allocation") is None:
        states += ["pending"] * (not deleted)
    else:
        states += ["allocated"] + ["reserved"] * bool(status.get("reservedFor"))
    return [name_of(value), joined(states), ages.of(value)]


node_fields: Final = selectable("spec.unschedulable", default="false")

RULES: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "nodes"): Rules(
        default=default_node,
        check=check_node,
        check_update=check_node_update,
        check_status=check_node_status,
        fields=node_fields,
        cells=node_cells,
        storage_prefix="minions",
    ),
    ("coordination.k8s.io/v1", "leases"): Rules(
        create=create_lease,
        update=update_lease,
        check=check_lease,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
        cells=row(field_of("spec", "holderIdentity")),
        creates_on_update=True,
    ),
    ("scheduling.k8s.io/v1", "priorityclasses"): Rules(
        default=default_priority_class,
        create=begin_generation,
        check_new=check_priority_class,
        check_update=check_priority_class_update,
        cells=lambda value, ages: [
            value["metadata"]["name"],
            value.get("value", 0),
            value.get("globalDefault", False),
            ages.of(value),
            value.get("preemptionPolicy", ""),
        ],
    ),
    ("node.k8s.io/v1", "runtimeclasses"): Rules(
        check=check_runtime_class,
        check_update=check_runtime_class_update,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
        cells=row(field_of("handler")),
        creates_on_update=True,
    ),
    ("resource.k8s.io/v1", "deviceclasses"): Rules(
        counts_generation=True,
        returns_deleted=True,
    ),
    ("resource.k8s.io/v1", "resourceslices"): Rules(
        counts_generation=True,
        cells=row(field_of("spec", "nodeName"), field_of("spec", "driver"), field_of("spec", "pool", "name")),
        returns_deleted=True,
    ),
    ("resource.k8s.io/v1", "resourceclaims"): Rules(
        default=default_claim,
        cells=resource_claim_cells,
        returns_deleted=True,
    ),
    ("resource.k8s.io/v1", "resourceclaimtemplates"): Rules(
        default=default_claim_template,
        returns_deleted=True,
    ),
}
