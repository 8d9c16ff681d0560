"""Checks of leases, budgets, autoscalers and classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.api.names import DNS_LABEL
from navarch.cluster.server.builtin.checks.common import at_least_zero, choice, int_or_percent, label_name, named
from navarch.cluster.server.causes import forbidden, invalid, required
from navarch.cluster.server.metadata import immutable_faults, selector_faults
from navarch.cluster.server.request import Json
from navarch.errors import Cause

__all__ = [
    "check_autoscaler",
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
_METRICS: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}


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


def check_autoscaler(value: Json) -> Iterator[Cause]:
    """A HorizontalPodAutoscaler."""
    spec, target = value["spec"], value["spec"]["scaleTargetRef"]
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if least is not None and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    for name in ("kind", "name"):
        if not target.get(name):
            yield required(f"spec.scaleTargetRef.{name}")
    if not target.get("apiVersion", "").rpartition("/")[0] and target.get("kind") != "ReplicationController":
        yield invalid(
            "spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), "apiVersion must specify API group"
        )
    yield from _check_metrics(spec, least)


def _check_metrics(spec: Json, least: int | None) -> Iterator[Cause]:
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        source = _METRICS.get(metric.get("type", ""))
        if source is not None and metric.get(source) is None:
            yield required(f"spec.metrics[{index}].{source}", "must populate information for the given metric source")
    if least == 0 and not {"Object", "External"} & {metric.get("type") for metric in metrics}:
        said = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", said)


def check_storage_class(value: Json) -> Iterator[Cause]:
    """A StorageClass."""
    provisioner = value.get("provisioner", "")
    if not provisioner:
        yield required("provisioner")
    else:
        yield from label_name(provisioner.lower(), "provisioner")
    yield from choice(value.get("reclaimPolicy"), "reclaimPolicy", ("Delete", "Retain"))
    yield from choice(value.get("volumeBindingMode"), "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))


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
    yield from choice(value.get("preemptionPolicy"), "preemptionPolicy", ("Never", "PreemptLowerPriority"))


def check_priority_class_update(value: Json, old: Json) -> Iterator[Cause]:
    """A priority never changes."""
    if value.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    yield from immutable_faults(value.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


def check_runtime_class(value: Json) -> Iterator[Cause]:
    """A RuntimeClass."""
    yield from named(value.get("handler", ""), "handler", DNS_LABEL.faults)


def check_runtime_class_update(value: Json, old: Json) -> list[Cause]:
    """Its handler never changes."""
    return immutable_faults(value.get("handler"), old.get("handler"), "handler")
