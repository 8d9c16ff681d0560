"""Checks of Nodes, Leases, PriorityClasses and RuntimeClasses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.checks import (
    NOT_NEGATIVE,
    address_range,
    at_least_zero,
    choice,
    label_name,
    required_name,
)
from navarch.cluster.server.kinds.builtin.pods.containers import check_resources
from navarch.cluster.server.kinds.builtin.pods.spec import EFFECTS, check_tolerations
from navarch.cluster.server.objects.metadata import immutable_faults, label_faults, value_faults
from navarch.cluster.server.wire.causes import duplicate, forbidden, invalid, required
from navarch.cluster.server.wire.request import Json
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
    """Where a node is, and the addresses of its pods, are given once; it has each of its own once."""
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
