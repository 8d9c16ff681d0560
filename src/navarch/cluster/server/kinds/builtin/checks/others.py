"""Checks of leases, budgets and classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.cluster.server.kinds.builtin.checks.common import (
    at_least_zero,
    choice,
    int_or_percent,
    label_name,
    required_name,
    unique,
)
from navarch.cluster.server.kinds.builtin.checks.containers import check_resources
from navarch.cluster.server.kinds.builtin.checks.pod_spec import check_tolerations
from navarch.cluster.server.objects.metadata import immutable_faults, label_faults, selector_faults
from navarch.cluster.server.wire.causes import duplicate, forbidden, invalid, required
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = [
    "check_budget",
    "check_lease",
    "check_priority_class",
    "check_priority_class_update",
    "check_runtime_class",
    "check_runtime_class_update",
    "check_storage_class",
    "check_storage_class_update",
]

_HIGHEST_PRIORITY: Final = 1_000_000_000
_SYSTEM_PRIORITIES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def check_lease(value: Json) -> Iterator[Cause]:
    """A Lease."""
    spec = value["spec"]
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from at_least_zero(spec, "leaseTransitions", "spec")


def check_budget(value: Json) -> Iterator[Cause]:
    """A PodDisruptionBudget."""
    spec = value["spec"]
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    yield from int_or_percent(least, "spec.minAvailable", at_most_all=True)
    yield from int_or_percent(most, "spec.maxUnavailable", at_most_all=True)
    yield from selector_faults(spec.get("selector"), "spec.selector")
    yield from choice(
        spec.get("unhealthyPodEvictionPolicy"),
        "spec.unhealthyPodEvictionPolicy",
        ("AlwaysAllow", "IfHealthyBudget"),
    )


def check_storage_class(value: Json) -> Iterator[Cause]:
    """A StorageClass."""
    provisioner = value.get("provisioner", "")
    if not provisioner:
        yield required("provisioner")
    else:
        yield from label_name(provisioner.lower(), "provisioner")
    yield from choice(value.get("reclaimPolicy"), "reclaimPolicy", ("Delete", "Retain"))
    if "" in (value.get("parameters") or ()):
        yield invalid("parameters", "", "field can not be empty.")
    yield from choice(value.get("volumeBindingMode"), "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    yield from _check_topologies(value.get("allowedTopologies") or [])


def _check_topologies(terms: list[Json]) -> Iterator[Cause]:
    """Terms that differ, and choose something."""
    known: list[Json] = [{}]
    for index, term in enumerate(terms):
        place, chosen = f"allowedTopologies[{index}].matchLabelExpressions", {}
        for number, each in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = each.get("key", ""), each.get("values") or []
            if not values:
                yield required(f"{place}[{number}].values")
            yield from unique((text, f"{place}[{number}].values[{at}]") for at, text in enumerate(values))
            yield from label_name(key, f"{place}[{number}].key")
            if key in chosen:
                yield duplicate(f"{place}[{number}].key", key)
            chosen[key] = {*values}
        if chosen in known:
            yield duplicate(place, "")
        known.append(chosen)


def check_storage_class_update(value: Json, old: Json) -> Iterator[Cause]:
    """What a class makes never changes."""
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from immutable_faults(value.get(name), old.get(name), name)


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
