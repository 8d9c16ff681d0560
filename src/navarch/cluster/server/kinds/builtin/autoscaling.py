"""HorizontalPodAutoscalers: rules, defaults, checks, columns, and the conversion between v1 and v2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from navarch.api.names import DNS_LABEL
from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.checks import NOT_NEGATIVE, choice, not_negative, required_name
from navarch.cluster.server.kinds.builtin.generic.columns import NONE, UNKNOWN, UNSET, Ages, name_of
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules, path_segment_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, unsupported
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
    """Checks a source with a metric name and a target."""
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


_PODS_POLICY: Final = {"type": "Pods", "value": 4, "periodSeconds": 15}
_PERCENT_POLICY: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}


def default_autoscaler(value: Json) -> None:
    """A HorizontalPodAutoscaler."""
    spec = value["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        _default_scaling(behavior.setdefault("scaleUp", {}), [_PODS_POLICY, _PERCENT_POLICY], 0)
        _default_scaling(behavior.setdefault("scaleDown", {}), [_PERCENT_POLICY], None)


def default_autoscaler_v1(value: Json) -> None:
    """A HorizontalPodAutoscaler of the first version."""
    value["spec"].setdefault("minReplicas", 1)
    value["spec"].setdefault("targetCPUUtilizationPercentage", 80)


def _default_scaling(rules: Json, policies: list[Json], window: int | None) -> None:
    if window is not None:
        rules.setdefault("stabilizationWindowSeconds", window)
    rules.setdefault("selectPolicy", "Max")
    if rules.get("policies") is None:
        rules["policies"] = [{**policy} for policy in policies]


_SHOWN_METRICS: Final = 2


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
    """Returns the row of `autoscaling/v1`, whose only metric is CPU."""
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
        name_of(value),
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


async def convert_autoscalers(objects: Sequence[Json], api_version: str) -> list[Json]:
    return [_converted(each, api_version) for each in objects]


def _converted(value: Json, api_version: str) -> Json:
    if value.get("apiVersion") == api_version:
        return value
    spec, status = {**value.get("spec", {})}, {**value.get("status", {})}
    if api_version == "autoscaling/v1":
        _to_first(spec, status)
    else:
        _to_second(spec, status)
    return {**value, "apiVersion": api_version, "spec": spec, "status": status}


def _to_first(spec: Json, status: Json) -> None:
    """The first version knows no metric but the processor."""
    target = _utilization(spec.pop("metrics", None), "target")
    current = _utilization(status.pop("currentMetrics", None), "current")
    spec.pop("behavior", None)
    status.pop("conditions", None)
    status.setdefault("currentReplicas", 0)
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current


def _utilization(metrics: Any, part: str) -> int | None:
    for metric in metrics or ():
        resource = metric.get("resource") or {}
        if metric.get("type") == "Resource" and resource.get("name") == "cpu":
            found: int | None = (resource.get(part) or {}).get("averageUtilization")
            return found
    return None


def _to_second(spec: Json, status: Json) -> None:
    target = spec.pop("targetCPUUtilizationPercentage", None)
    current = status.pop("currentCPUUtilizationPercentage", None)
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": wanted}}]
    status["currentMetrics"] = None
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    if current is not None:
        measured = {"name": "cpu", "current": {"averageUtilization": current}}
        status["currentMetrics"] = [{"type": "Resource", "resource": measured}]


RULES: Final[dict[tuple[str, str], Rules]] = {
    ("autoscaling/v2", "horizontalpodautoscalers"): Rules(
        default=default_autoscaler,
        empty_lists=tuple(("spec", "behavior", name, "policies") for name in ("scaleUp", "scaleDown")),
        check=check_autoscaler,
        check_status=check_autoscaler_status,
        cells=autoscaler_cells,
        convert=convert_autoscalers,
        storage_version="v2",
    ),
    ("autoscaling/v1", "horizontalpodautoscalers"): Rules(
        default=default_autoscaler_v1,
        check=check_autoscaler,
        check_status=check_autoscaler_status,
        cells=autoscaler_v1_cells,
        convert=convert_autoscalers,
        storage_version="v2",
    ),
}
