"""Kinds that are served in two shapes: events in two groups, autoscalers in two versions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from navarch.cluster.server.wire.request import Json

__all__ = ["converter_of"]

Convert = Callable[[Sequence[Json], str], Awaitable[list[Json]]]

_EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Fields of an event in the core group, and what `events.k8s.io` calls them."""
_OLD_NAMES: Final = {new: old for old, new in _EVENT_NAMES.items()}
_OLD_ALWAYS: Final[Json] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_NEW_ALWAYS: Final[Json] = {"eventTime": None, "regarding": {}, "deprecatedSource": {}}
_LEFT_OUT_EMPTY: Final = frozenset(
    {"deprecatedFirstTimestamp", "deprecatedLastTimestamp", "reportingController", "reportingInstance"}
)
"""What Go writes in one shape though it is empty, and not in the other."""


def converter_of(group: str, plural: str) -> Convert | None:
    """What brings objects of a kind into another version; None for kinds that have only one shape."""
    match group, plural:
        case ("" | "events.k8s.io", "events"):
            return _convert_events
        case ("autoscaling", "horizontalpodautoscalers"):
            return _convert_autoscalers
        case _:
            return None


async def _convert_events(objects: Sequence[Json], api_version: str) -> list[Json]:
    return [_event(each, api_version) for each in objects]


def _event(value: Json, api_version: str) -> Json:
    if value.get("apiVersion") == api_version:
        return value
    names, always = (_OLD_NAMES, _OLD_ALWAYS) if api_version == "v1" else (_EVENT_NAMES, _NEW_ALWAYS)
    found: Json = {names.get(key, key): part for key, part in value.items()}
    if api_version != "v1":
        found = {key: part for key, part in found.items() if part or key not in _LEFT_OUT_EMPTY}
    return {**always, **found, "apiVersion": api_version}


async def _convert_autoscalers(objects: Sequence[Json], api_version: str) -> list[Json]:
    return [_autoscaler(each, api_version) for each in objects]


def _autoscaler(value: Json, api_version: str) -> Json:
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
