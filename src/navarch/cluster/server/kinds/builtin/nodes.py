"""Nodes, Leases, PriorityClasses, RuntimeClasses and resource claims: rules, defaults, checks and columns."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.checks import (
    NOT_NEGATIVE,
    address_range,
    at_least_zero,
    choice,
    label_name,
    required_name,
)
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
from navarch.cluster.server.kinds.builtin.pods.containers import check_resources
from navarch.cluster.server.kinds.builtin.pods.spec import EFFECTS, check_tolerations
from navarch.cluster.server.objects.metadata import immutable_faults, label_faults, value_faults
from navarch.cluster.server.objects.types import WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required
from navarch.errors import Cause

_ONCE: Final = 'node updates may not change {} except from "" to valid'
_ONE_EACH: Final = "may specify no more than one CIDR for each IP family"
_PAIR: Final = "taints must be unique by key and effect pair"
_FAMILIES: Final = 2


def check_node(value: Json) -> Iterator[Cause]:
    """A Node."""
    yield from _check_taints(value["spec"].get("taints") or [])
    yield from _check_resources(value.get("status") or {})
    ranges = value["spec"].get("podCIDRs") or []
    faults = [cause for index, text in enumerate(ranges) for cause in address_range(text, f"spec.podCIDRs[{index}]")]
    yield from faults
    if not faults and len(ranges) > 1 and not _is_pair(ranges):
        yield invalid("spec.podCIDRs", ranges, _ONE_EACH)


def check_node_status(value: Json, old: Json) -> Iterator[Cause]:
    """The status of a Node."""
    yield from _check_resources(value.get("status") or {})
    yield from check_node_update(value, old)


def _check_resources(status: Json) -> Iterator[Cause]:
    for name in ("capacity", "allocatable"):
        for resource, amount in (status.get(name) or {}).items():
            if Quantity(amount) < 0:
                yield invalid(f"status.{name}.{resource}", amount, NOT_NEGATIVE)


def _is_pair(ranges: list[str]) -> bool:
    versions = [ipaddress.ip_network(each, strict=False).version for each in ranges]
    return len(ranges) == _FAMILIES and len({*versions}) == _FAMILIES


def _check_taints(taints: list[Json]) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        place = f"metadata.taints[{index}]"
        key, text, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        yield from label_name(key, f"{place}.key")
        if faults := value_faults(text):
            yield invalid(f"{place}.value", text, ";".join(faults))
        if not effect:
            yield required(f"{place}.effect")
        else:
            yield from choice(effect, f"{place}.effect", EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": text, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            found = duplicate(place, shown)
            yield Cause(found.field, found.reason, f"{found.message}: {_PAIR}")
        seen.add((key, effect))


def check_node_update(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses a changed provider ID or pod CIDR, and duplicate addresses."""
    spec, before, seen = value["spec"], old["spec"], list[Json]()
    for index, address in enumerate((value.get("status") or {}).get("addresses") or ()):
        if address in seen:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            yield duplicate(f"status.addresses[{index}]", shown)
        seen.append(address)
    ranges = before.get("podCIDRs")
    if ranges and (spec.get("podCIDRs") or []) != ranges:
        yield forbidden("spec.podCIDRs", _ONCE.format("podCIDR"))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        yield forbidden("spec.providerID", _ONCE.format("providerID"))


_HIGHEST_PRIORITY: Final = 1_000_000_000
_SYSTEM_PRIORITIES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def check_lease(value: Json) -> Iterator[Cause]:
    """A Lease."""
    spec = value["spec"]
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from at_least_zero(spec, "leaseTransitions", "spec")


def check_priority_class(value: Json) -> Iterator[Cause]:
    """A PriorityClass: high priorities are the system's."""
    name, priority = value["metadata"].get("name", ""), value.get("value", 0)
    if name.startswith("system-"):
        if _SYSTEM_PRIORITIES.get(name) != priority:
            said = "priority class names with 'system-' prefix are reserved for system use only. error:"
            yield forbidden("metadata.name", f"{said} {name} is not a known system priority class")
    elif priority > _HIGHEST_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}")
    yield from choice(value.get("preemptionPolicy"), "preemptionPolicy", ("PreemptLowerPriority", "Never"))


def check_priority_class_update(value: Json, old: Json) -> Iterator[Cause]:
    """A priority never changes."""
    if value.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    yield from immutable_faults(value.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


def check_runtime_class(value: Json) -> Iterator[Cause]:
    """A RuntimeClass."""
    yield from required_name(value.get("handler"), "handler")
    if (overhead := value.get("overhead")) is not None:
        yield from check_resources({"limits": overhead.get("podFixed")}, "overhead")
    scheduling = value.get("scheduling") or {}
    yield from label_faults(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    tolerations = scheduling.get("tolerations") or []
    yield from check_tolerations(tolerations, "scheduling.tolerations")
    seen: set[tuple[str, ...]] = set()
    for index, each in enumerate(tolerations):
        alike = tuple(each.get(name, "") for name in ("key", "operator", "value", "effect"))
        if alike in seen:
            yield duplicate(f"scheduling.tolerations[{index}]", each)
        seen.add(alike)


def check_runtime_class_update(value: Json, old: Json) -> list[Cause]:
    """Its handler never changes."""
    return immutable_faults(value.get("handler"), old.get("handler"), "handler")


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


def begin_generation(value: Json, _: WriteContext) -> None:
    """The first generation, which is the last one of kinds that do not count."""
    value["metadata"]["generation"] = 1


def create_lease(value: Json, _: WriteContext) -> None:
    """Drops the fields of coordinated leader election, whose feature gate is off."""
    for name in _COORDINATED:
        value["spec"].pop(name, None)


def update_lease(value: Json, _old: Json, operation: WriteContext) -> None:
    """Drops the fields of coordinated leader election, whose feature gate is off."""
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
        selects_namespace=False,
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
