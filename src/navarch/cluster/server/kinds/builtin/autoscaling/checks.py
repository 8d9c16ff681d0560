"""Checks of HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from navarch.api.names import DNS_LABEL
from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.checks import NOT_NEGATIVE, choice, not_negative, required_name
from navarch.cluster.server.kinds.builtin.generic.strategy import path_segment_faults
from navarch.cluster.server.wire.causes import forbidden, invalid, required, unsupported
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TYPES: Final = tuple(sorted(_SOURCES))
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
_LONGEST_WINDOW: Final = 3600
_LONGEST_PERIOD: Final = 1800
_NO_INFORMATION: Final = "must populate information for the given metric source"
_TOO_MUCH: Final = "must populate the given metric source only"
_SCALE_TO_ZERO: Final = "must specify at least one Object or External metric to support scaling to zero replicas"


def check_autoscaler(value: Json) -> Iterator[Cause]:
    """A HorizontalPodAutoscaler."""
    spec = value["spec"]
    yield from _check_bounds(spec.get("minReplicas"), spec.get("maxReplicas", 0))
    yield from _check_reference(spec["scaleTargetRef"], "spec.scaleTargetRef", needs_group=True)
    for index, metric in enumerate(spec.get("metrics") or ()):
        yield from _check_metric(metric, f"spec.metrics[{index}]")
    yield from _check_metrics_of_none(spec)
    for name in ("scaleUp", "scaleDown"):
        if (rules := (spec.get("behavior") or {}).get(name)) is not None:
            yield from _check_scaling(rules, f"spec.behavior.{name}")


def check_autoscaler_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Counts that can be."""
    yield from not_negative(value.get("status") or {}, "currentReplicas", "desiredReplicas")


def _check_bounds(least: int | None, most: int) -> Iterator[Cause]:
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _check_reference(reference: Json, path: str, *, needs_group: bool) -> Iterator[Cause]:
    for name in ("kind", "name"):
        yield from required_name(reference.get(name), f"{path}.{name}", path_segment_faults)
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif needs_group and "/" not in version and reference.get("kind") != "ReplicationController":
        yield invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _check_metrics_of_none(spec: Json) -> Iterator[Cause]:
    known = {metric.get("type") for metric in spec.get("metrics") or ()}
    if spec.get("minReplicas") == 0 and not known & {"Object", "External"}:
        yield forbidden("spec.metrics", _SCALE_TO_ZERO)


def _check_metric(metric: Json, path: str) -> Iterator[Cause]:
    kind = metric.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    yield from choice(kind, f"{path}.type", _TYPES)
    given = [name for name in _SOURCES.values() if metric.get(name) is not None]
    if given:
        yield from _CHECKS[given[0]](metric[given[0]], f"{path}.{given[0]}")
    wanted = _SOURCES.get(kind)
    if wanted is not None and wanted not in given:
        yield required(f"{path}.{wanted}", _NO_INFORMATION)
    if len(given) != 1:
        yield from (forbidden(f"{path}.{name}", _TOO_MUCH) for name in given if name != wanted)


def _check_object(source: Json, path: str) -> Iterator[Cause]:
    yield from _check_reference(source.get("describedObject") or {}, f"{path}.describedObject", needs_group=False)
    yield from _check_measured(source, path)
    if not _given(source, "value", "averageValue"):
        yield required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _check_external(source: Json, path: str) -> Iterator[Cause]:
    yield from _check_measured(source, path)
    given = _given(source, "value", "averageValue")
    if not given:
        said = "must set either a target value for metric or a per-pod target"
        yield required(f"{path}.target.averageValue", said)
    if len(given) > 1:
        said = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{path}.target.value", said)


def _check_pods(source: Json, path: str) -> Iterator[Cause]:
    yield from _check_measured(source, path)
    if not _given(source, "averageValue"):
        yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _check_resource(source: Json, path: str) -> Iterator[Cause]:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    yield from _check_target(source.get("target") or {}, f"{path}.target")
    given = _given(source, "averageUtilization", "averageValue")
    if not given:
        said = "must set either a target raw value or a target utilization"
        yield required(f"{path}.target.averageUtilization", said)
    if len(given) > 1:
        said = "may not set both a target raw value and a target utilization"
        yield forbidden(f"{path}.target.averageValue", said)


def _check_container_resource(source: Json, path: str) -> Iterator[Cause]:
    if not source.get("container"):
        yield required(f"{path}.container", "must specify a container")
    else:
        yield from required_name(source["container"], f"{path}.container", DNS_LABEL.faults)
    yield from _check_resource(source, path)


_CHECKS: Final[dict[str, Callable[[Json, str], Iterator[Cause]]]] = {
    "object": _check_object,
    "external": _check_external,
    "pods": _check_pods,
    "resource": _check_resource,
    "containerResource": _check_container_resource,
}


def _given(source: Json, *names: str) -> list[str]:
    return [name for name in names if (source.get("target") or {}).get(name) is not None]


def _check_measured(source: Json, path: str) -> Iterator[Cause]:
    """What has the name of a metric, and a target."""
    name, field = (source.get("metric") or {}).get("name", ""), f"{path}.metric.name"
    if not name:
        yield required(field, "must specify a metric name")
    else:
        yield from required_name(name, field, path_segment_faults)
    yield from _check_target(source.get("target") or {}, f"{path}.target")


def _check_target(target: Json, path: str) -> Iterator[Cause]:
    kind = target.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        yield invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        if target.get(name) is not None and Quantity(target[name]) <= 0:
            yield invalid(f"{path}.{name}", target[name], "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield invalid(f"{path}.averageUtilization", utilization, "must be greater than 0")


def _check_scaling(rules: Json, path: str) -> Iterator[Cause]:
    window, field = rules.get("stabilizationWindowSeconds") or 0, f"{path}.stabilizationWindowSeconds"
    if window < 0:
        yield invalid(field, window, "must be greater than or equal to zero")
    if window > _LONGEST_WINDOW:
        yield invalid(field, window, f"must be less than or equal to {_LONGEST_WINDOW}")
    yield from choice(rules.get("selectPolicy"), f"{path}.selectPolicy", ("Disabled", "Max", "Min"))
    if not rules.get("policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.get("policies") or ()):
        yield from _check_policy(policy, f"{path}.policies[{index}]")
    if rules.get("tolerance") is not None and Quantity(rules["tolerance"]) < 0:
        yield invalid(f"{path}.tolerance", rules["tolerance"], NOT_NEGATIVE)


def _check_policy(policy: Json, path: str) -> Iterator[Cause]:
    if policy.get("type") not in {"Pods", "Percent"}:
        yield unsupported(f"{path}.type", policy.get("type", ""), ("Percent", "Pods"))
    for name in ("value", "periodSeconds"):
        if policy.get(name, 0) <= 0:
            yield invalid(f"{path}.{name}", policy.get(name, 0), "must be greater than zero")
    if policy.get("periodSeconds", 0) > _LONGEST_PERIOD:
        said = f"must be less than or equal to {_LONGEST_PERIOD}"
        yield invalid(f"{path}.periodSeconds", policy["periodSeconds"], said)
