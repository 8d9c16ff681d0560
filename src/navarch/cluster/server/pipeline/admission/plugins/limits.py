"""LimitRanger: defaults and bounds of resources, from the LimitRanges of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final

from navarch.api import Quantity
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.listers import ObjectReader
from navarch.cluster.server.pipeline.admission.plugins.plugin import PODS, ObjectReadingPlugin, forbid
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CLAIM: Final = "PersistentVolumeClaim"
_Amounts = dict[str, Quantity]
_MOST_SAID: Final = 256 * 1024
"""Characters; annotations that are longer are refused."""
_MOST_FAULTS: Final = 100


async def _ranges(attributes: Attributes, objects: ObjectReader) -> list[list[Json]]:
    """The limits of each LimitRange of the namespace."""
    resource = objects.resource("", "v1", "limitranges")
    found = await objects.list(resource, attributes.namespace)
    return [each["spec"].get("limits") or [] for each in found]


class LimitRangerDefaults(ObjectReadingPlugin):
    """Fills in requests and limits of a new pod's containers, and says so in an annotation."""

    resources = PODS

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE":
            return
        limits = [each for limits in await _ranges(attributes, self._objects) for each in limits]
        containers = [each for each in limits if each.get("type") == "Container"]
        if not containers:
            return
        defaults = {
            "requests": {key: item for each in containers for key, item in (each.get("defaultRequest") or {}).items()},
            "limits": {key: item for each in containers for key, item in (each.get("default") or {}).items()},
        }
        current_budget().charge_nodes(sum(map(len, defaults.values())) * _container_count(value))
        said = [*_filled(value["spec"], "containers", defaults), *_filled(value["spec"], "initContainers", defaults)]
        if said:
            annotations = value["metadata"].get("annotations") or {}
            text = f"LimitRanger plugin set: {_joined(said)}"
            value["metadata"]["annotations"] = {**annotations, _ANNOTATION: text}


def _container_count(pod: Json) -> int:
    return sum(len(pod["spec"].get(field) or ()) for field in ("containers", "initContainers"))


def _joined(said: list[str]) -> str:
    """All of it, or so much that the annotation is refused for its length."""
    length = 0
    for index, each in enumerate(said):
        length += len(each)
        if length > _MOST_SAID:
            return "; ".join(said[: index + 1])
    return "; ".join(said)


def _filled(spec: Json, field: str, defaults: dict[str, Json]) -> list[str]:
    """Fills in what is missing; what was done, in words."""
    said: list[str] = []
    containers = []
    what = "container" if field == "containers" else "init container"
    for container in spec.get(field) or ():
        resources = {**(container.get("resources") or {})}
        for kind in ("requests", "limits"):
            known = resources.get(kind) or {}
            missing = sorted(key for key in defaults[kind] if key not in known)
            if missing:
                resources[kind] = {**known, **{key: defaults[kind][key] for key in missing}}
                said.append(f"{', '.join(missing)} {kind[:-1]} for {what} {container.get('name', '')}")
        containers.append({**container, "resources": resources})
    if containers:
        spec[field] = containers
    return said


class LimitRanger(ObjectReadingPlugin):
    """Refuses pods and claims that ask for more or less than they may."""

    resources = PODS | {("", "persistentvolumeclaims")}

    async def check(self, attributes: Attributes) -> None:
        """See `Validating.check`."""
        value = attributes.value or {}
        is_claim = attributes.resource.kind == _CLAIM
        if attributes.operation == "UPDATE" and not is_claim:
            return
        ranges = await _ranges(attributes, self._objects)
        try:
            find = partial(_claim_faults, claim=value) if is_claim else partial(_pod_faults, pod=_PodAmounts(value))
        except InvalidValueError:
            return
        for limits in ranges:
            try:
                faults = [*islice(find(limits), _MOST_FAULTS)]
            except InvalidValueError:
                continue
            if faults:
                raise forbid(attributes, faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _amounts(document: Any) -> _Amounts:
    return {key: Quantity.from_wire(value) for key, value in (document or {}).items()}


class _PodAmounts:
    """What the containers of a pod ask for, parsed once for all limits of its namespace."""

    def __init__(self, pod: Json) -> None:
        self._containers = [_PodAmounts._asked(each) for each in pod["spec"].get("containers") or ()]
        self._initial = [_PodAmounts._asked(each) for each in pod["spec"].get("initContainers") or ()]

    @staticmethod
    def _asked(container: Json) -> tuple[_Amounts, _Amounts]:
        """Requests and limits."""
        resources = container.get("resources") or {}
        return _amounts(resources.get("requests")), _amounts(resources.get("limits"))

    @property
    def each(self) -> list[tuple[_Amounts, _Amounts]]:
        """Requests and limits of each container."""
        return [*self._containers, *self._initial]

    @cached_property
    def together(self) -> tuple[_Amounts, _Amounts]:
        """Requests and limits of the pod: containers run side by side, initial ones one after the other before them."""
        return self._sum(0), self._sum(1)

    def _sum(self, kind: int) -> _Amounts:
        total: _Amounts = {}
        for container in self._containers:
            for key, amount in container[kind].items():
                total[key] = total[key] + amount if key in total else amount
        for container in self._initial:
            for key, amount in container[kind].items():
                total[key] = max(total.get(key, amount), amount)
        return total


def _pod_faults(limits: list[Json], pod: _PodAmounts) -> Iterator[str]:
    """Charges each comparison to the request: a namespace may have very many LimitRanges, and a pod many containers."""
    for limit in limits:
        if limit.get("type") not in {"Container", "Pod"}:
            continue
        bounds = _LimitBounds(limit)
        asked = pod.each if limit["type"] == "Container" else [pod.together]
        current_budget().charge_nodes((1 + bounds.count) * len(asked))
        for requests, most in asked:
            yield from _faults(bounds, requests, most)


def _claim_faults(limits: list[Json], claim: Json) -> Iterator[str]:
    requests = _amounts((claim["spec"].get("resources") or {}).get("requests"))
    for limit in limits:
        if limit.get("type") == _CLAIM:
            bounds = _LimitBounds(limit)
            current_budget().charge_nodes(1 + bounds.count)
            yield from bounds.each("min", partial(_too_little, requests, {}))
            yield from bounds.each("max", partial(_claims_too_much, requests))


class _LimitBounds:
    """The bounds of one limit, parsed once for all containers."""

    def __init__(self, limit: Json) -> None:
        self._kind = limit["type"]
        self._amounts = {
            field: sorted(_amounts(limit.get(field)).items()) for field in ("min", "max", "maxLimitRequestRatio")
        }

    @property
    def count(self) -> int:
        return sum(map(len, self._amounts.values()))

    def each(self, field: str, fault: Callable[[str, Quantity, str], str]) -> Iterator[str]:
        """The faults that are found with the bounds of a field."""
        for name, bound in self._amounts[field]:
            if said := fault(name, bound, self._kind):
                yield said


def _faults(bounds: _LimitBounds, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    yield from bounds.each("min", partial(_too_little, requests, limits))
    yield from bounds.each("max", partial(_too_much, requests, limits))
    yield from bounds.each("maxLimitRequestRatio", partial(_too_far_apart, requests, limits))


def _too_little(requests: _Amounts, limits: _Amounts, name: str, bound: Quantity, kind: str) -> str:
    said = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{said}.  No request is specified"
    if requests[name] < bound:
        return f"{said}, but request is {requests[name]}"
    return f"{said}, but limit is {limits[name]}" if name in limits and limits[name] < bound else ""


def _too_much(requests: _Amounts, limits: _Amounts, name: str, bound: Quantity, kind: str) -> str:
    said = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        return f"{said}.  No limit is specified"
    if bound < limits[name]:
        return f"{said}, but limit is {limits[name]}"
    return f"{said}, but request is {requests[name]}" if name in requests and bound < requests[name] else ""


def _claims_too_much(requests: _Amounts, name: str, bound: Quantity, kind: str) -> str:
    if name not in requests or not bound < requests[name]:
        return ""
    return f"maximum {name} usage per {kind} is {bound}, but request is {requests[name]}"


def _too_far_apart(requests: _Amounts, limits: _Amounts, name: str, bound: Quantity, kind: str) -> str:
    said = f"{name} max limit to request ratio per {kind} is {bound}, but"
    for what, amounts in (("request", requests), ("limit", limits)):
        if not amounts.get(name):
            return f"{said} no {what} is specified or {what} is 0"
    ratio = limits[name].decimal / requests[name].decimal
    return f"{said} provided ratio is {ratio:.6f}" if ratio > bound.decimal else ""
