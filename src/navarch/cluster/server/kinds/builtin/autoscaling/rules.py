"""Rules of HorizontalPodAutoscalers: defaults, columns, and the conversion between v1 and v2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.autoscaling.checks import check_autoscaler, check_autoscaler_status
from navarch.cluster.server.kinds.builtin.generic.columns import NONE, UNKNOWN, UNSET, Ages, name_of
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules
from navarch.cluster.server.wire.request import Json

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
