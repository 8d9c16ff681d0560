"""ResourceQuotas and LimitRanges: checks, defaults and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.checks import NOT_NEGATIVE, resource_name, standard_resource
from navarch.cluster.server.kinds.builtin.generic.columns import Ages, name_of
from navarch.cluster.server.objects.metadata import FIELD_IS_IMMUTABLE, key_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required
from navarch.errors import Cause

_COUNTED: Final = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_OF_PODS: Final = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_RESOURCES_OF_SCOPES: Final = {
    "Terminating": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "CrossNamespacePodAffinity": _OF_PODS,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_WITH_VALUES: Final = frozenset({"PriorityClass", "VolumeAttributesClass"})
_UNSUPPORTED: Final = "unsupported scope applied to resource"
_ONLY_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_NO_VALUE: Final = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
_SOME_VALUE: Final = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
_LIMITED: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_OF_CONTAINERS: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_NO_STORAGE: Final = "either minimum or maximum storage value is required, but neither was provided"
_BOUNDS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ORDER: Final = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""Pairs of bounds of which the first is at most the second, with field, amount and text of the fault."""


def check_quota(value: Json) -> Iterator[Cause]:
    """A ResourceQuota."""
    spec = value["spec"]
    yield from _check_amounts(spec.get("hard") or {}, "spec.hard")
    yield from _check_scopes(spec)
    if (selector := spec.get("scopeSelector")) is not None:
        yield from _check_scope_selector(spec, selector)


def check_quota_update(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses changed scopes of a quota."""
    scopes, before = value["spec"].get("scopes"), old["spec"].get("scopes")
    if {*(scopes or ())} != {*(before or ())}:
        yield invalid("spec.scopes", scopes, FIELD_IS_IMMUTABLE)


def check_quota_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Checks the names and amounts in the status like those in the spec."""
    for name in ("hard", "used"):
        yield from _check_amounts((value.get("status") or {}).get(name) or {}, f"status.{name}")


def quota_warnings(value: Json, old: Json | None) -> list[str]:
    """More may be asked for than used."""
    hard = (value["spec"].get("hard") or {}) if old is None else {}
    found = []
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        limit, asked = f"limits.{name}", f"requests.{name}"
        if asked not in hard and name in {"cpu", "memory"}:
            asked = name
        if asked in hard and limit in hard and Quantity(hard[asked]) > Quantity(hard[limit]):
            found.append(f"ResourceQuota {asked} ({hard[asked]}) should be less than {limit} ({hard[limit]})")
    return found


def _check_amounts(amounts: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name, amount in amounts.items():
        field = f"{path}[{name}]"
        yield from resource_name(name, field)
        if "/" not in name and not _is_for_quotas(name):
            yield invalid(field, name, "must be a standard resource for quota")
        if Quantity(amount) < 0:
            yield invalid(field, amount, NOT_NEGATIVE)
        if _is_whole(name) and Quantity(amount).milli_value % 1000:
            yield invalid(field, amount, "must be an integer")


def _is_for_quotas(name: str) -> bool:
    return name != "storage" and standard_resource(name)


def _is_whole(name: str) -> bool:
    """Tells whether a resource needs whole numbers: counted objects and qualified names do."""
    is_foreign = "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
    return name in _COUNTED or (is_foreign and not key_faults(f"requests.{name}"))


def _check_scopes(spec: Json) -> Iterator[Cause]:
    scopes, field = spec.get("scopes") or [], "spec.scopes"
    for scope in scopes:
        if scope not in _RESOURCES_OF_SCOPES:
            yield invalid(field, scopes, "unsupported scope")
        yield from (invalid(field, scopes, _UNSUPPORTED) for _ in _misfits(spec, scope))
    yield from _check_opposites(spec, {*scopes}, field)


def _misfits(spec: Json, scope: str) -> list[str]:
    """The resources of a quota that its scope has nothing to do with."""
    known = _RESOURCES_OF_SCOPES.get(scope)
    return [name for name in spec.get("hard") or () if known is not None and _is_for_quotas(name) and name not in known]


def _check_opposites(spec: Json, scopes: set[str], field: str) -> Iterator[Cause]:
    for pair in _OPPOSITES:
        if scopes >= {*pair}:
            yield invalid(field, spec.get("scopes"), "conflicting scopes")


def _check_scope_selector(spec: Json, selector: Json) -> Iterator[Cause]:
    field, seen = "spec.scopeSelector.matchExpressions", set[str]()
    for requirement in selector.get("matchExpressions") or ():
        scope = requirement.get("scopeName", "")
        seen.add(scope)
        if scope not in _RESOURCES_OF_SCOPES:
            yield invalid(f"{field}.scopeName", scope, "unsupported scope")
        shown = {"MatchExpressions": selector.get("matchExpressions")}
        yield from (invalid(field, shown, _UNSUPPORTED) for _ in _misfits(spec, scope))
        yield from _check_scope_operator(requirement, scope, field)
    yield from _check_opposites(spec, seen, field)


def _check_scope_operator(requirement: Json, scope: str, field: str) -> Iterator[Cause]:
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator != "Exists" and scope in _RESOURCES_OF_SCOPES.keys() - _WITH_VALUES:
        yield invalid(f"{field}.operator", operator, _ONLY_EXISTS)
    if operator in {"In", "NotIn"}:
        if not values:
            yield required(f"{field}.values", _SOME_VALUE)
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield invalid(f"{field}.values", values, _NO_VALUE)
    else:
        yield invalid(f"{field}.operator", operator, "not a valid selector operator")


def check_limit_range(value: Json) -> Iterator[Cause]:
    """A LimitRange."""
    seen: set[str] = set()
    for index, item in enumerate(value["spec"].get("limits") or ()):
        place, kind = f"spec.limits[{index}]", item.get("type", "")
        yield from _check_limit_type(kind, f"{place}.type")
        if kind in seen:
            yield duplicate(f"{place}.type", kind)
        seen.add(kind)
        yield from _check_limit(item, kind, place)


def _check_limit_type(kind: str, field: str) -> Iterator[Cause]:
    faults = key_faults(kind)
    yield from (invalid(field, kind, said) for said in faults)
    if not faults and "/" not in kind and kind not in _LIMITED:
        yield invalid(field, kind, "must be a standard limit type or fully qualified")


def _check_limit(item: Json, kind: str, place: str) -> Iterator[Cause]:
    banned = ("default", "defaultRequest") if kind == "Pod" else ()
    bounds = {name: item.get(name) or {} for name in _BOUNDS if name not in banned}
    for name in banned:
        if item.get(name):
            yield forbidden(f"{place}.{name}", "may not be specified when `type` is 'Pod'")
    for name, amounts in bounds.items():
        for resource in amounts:
            yield from _check_limited(kind, resource, f"{place}.{name}[{resource}]")
    if kind == "PersistentVolumeClaim" and "storage" not in {*bounds["min"], *bounds["max"]}:
        yield required(f"{place}.limits", _NO_STORAGE)
    for resource in sorted({resource for amounts in bounds.values() for resource in amounts}):
        yield from _check_bounds(
            {name: each[resource] for name, each in bounds.items() if resource in each}, resource, place
        )


def _check_limited(kind: str, resource: str, field: str) -> Iterator[Cause]:
    yield from resource_name(resource, field)
    if kind not in {"Pod", "Container"}:
        return
    if "/" not in resource and not resource.startswith("hugepages-") and resource not in _OF_CONTAINERS:
        yield invalid(field, resource, "must be a standard resource for containers")


def _check_bounds(bounds: Json, resource: str, path: str) -> Iterator[Cause]:
    """Least, requests, limits and most are in this order."""
    for less, more, told, shown, said in _ORDER:
        if less in bounds and more in bounds and Quantity(bounds[less]) > Quantity(bounds[more]):
            words = said.format(bounds[less], bounds[more])
            yield invalid(f"{path}.{told}[{resource}]", bounds[shown], words)
    yield from _check_ratio(bounds, f"{path}.maxLimitRequestRatio[{resource}]")
    limit, request = bounds.get("default"), bounds.get("defaultRequest")
    is_exact = ("/" in resource and "kubernetes.io/" not in resource) or resource.startswith("hugepages-")
    if is_exact and limit is not None and request is not None and Quantity(limit) != Quantity(request):
        said = f"default value {limit} must equal to defaultRequest value {request} in {resource}"
        yield invalid(f"{path}.defaultRequest[{resource}]", request, said)


def _check_ratio(bounds: Json, field: str) -> Iterator[Cause]:
    ratio = bounds.get("maxLimitRequestRatio")
    if ratio is None:
        return
    if Quantity(ratio) < 1:
        yield invalid(field, ratio, f"ratio {ratio} is less than 1")
    least, most = Quantity(bounds.get("min", "0")), Quantity(bounds.get("max", "0"))
    if "max" in bounds and least and Quantity(ratio).decimal > most.decimal / least.decimal:
        said = f"ratio {ratio} is greater than max/min = {most.decimal / least.decimal:f}"
        yield invalid(field, ratio, said)


def default_limit_range(value: Json) -> None:
    """A LimitRange: the limits of containers fill in for their defaults."""
    for item in value["spec"].get("limits") or ():
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        if limits:
            item["default"] = limits
        if requests:
            item["defaultRequest"] = requests


def quota_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, what is used of requests, what is used of limits, age."""
    status = value.get("status", {})
    used = status.get("used") or {}
    shown = {key: f"{key}: {used.get(key, '0')}/{hard}" for key, hard in sorted((status.get("hard") or {}).items())}
    requests = [text for key, text in shown.items() if not key.startswith("limits.")]
    limits = [text for key, text in shown.items() if key.startswith("limits.")]
    return [name_of(value), ", ".join(requests), ", ".join(limits), ages.of(value)]
