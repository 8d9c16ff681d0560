"""The usage of objects in resource quotas. Pure: admission charges by it, and the quota controller recomputes totals by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from navarch.api import Quantity

Json = dict[str, Any]
Amounts = dict[str, Quantity]

_ONE: Final = Quantity(1)
_BY_NAME: Final = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    }
)
"""Kinds that are counted by their plain name, too."""
_COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_SPECIFIED: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"
_DEVICE_CLAIMS: Final = ("resource.k8s.io", "resourceclaims")
_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES: Final = 32
"""The most devices of a claim; a claim for all devices counts as that many."""
_CLASS_BETA: Final = "volume.beta.kubernetes.io/storage-class"


def usage(group: str, plural: str, value: Json) -> Amounts:
    """Returns the usage of one object, by all resource names of quotas."""
    found = counted(group, plural)
    if (group, plural) == _DEVICE_CLAIMS:
        return found | _used_by_device_claim(value["spec"])
    if group:
        return found
    if plural == "pods":
        return found | _used_by_pod(value) if _is_running(value) else _without(found, "pods")
    if plural == "services":
        return found | _used_by_service(value["spec"])
    return found | _used_by_claim(value) if plural == "persistentvolumeclaims" else found


def counted(group: str, plural: str, number: int = 1) -> Amounts:
    """Returns the object-count usage of so many objects.

    >>> counted("apps", "deployments")
    {'count/deployments.apps': Quantity('1')}
    """
    amount = Quantity(number)
    found = {f"count/{plural}.{group}" if group else f"count/{plural}": amount}
    return {**found, plural: amount} if not group and plural in _BY_NAME else found


def kind_behind(name: str) -> tuple[str, str]:
    """The group and plural of the kind whose objects use what a quota calls so.

    >>> kind_behind("count/deployments.apps"), kind_behind("services.nodeports"), kind_behind("limits.cpu")
    (('apps', 'deployments'), ('', 'services'), ('', 'pods'))
    """
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        return group, plural
    if name.endswith(_DEVICES):
        return _DEVICE_CLAIMS
    if name == "requests.storage" or _OF_CLASS in name:
        return "", "persistentvolumeclaims"
    plural = name.partition(".")[0]
    return "", plural if plural in _BY_NAME else "pods"


def added(total: Amounts, more: Amounts) -> Amounts:
    """Both together."""
    return {**total, **{name: total[name] + amount if name in total else amount for name, amount in more.items()}}


def _without(amounts: Amounts, name: str) -> Amounts:
    return {key: amount for key, amount in amounts.items() if key != name}


# Pods


def _is_running(pod: Json) -> bool:
    """A pod that has ended uses nothing but its place."""
    return (pod.get("status") or {}).get("phase") not in _FINISHED


def _used_by_pod(pod: Json) -> Amounts:
    spec = pod["spec"]
    requests, limits = _together(spec, "requests"), _together(spec, "limits")
    found: Amounts = {}
    for name, amount in requests.items():
        found[f"requests.{name}"] = amount
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = amount
    return found | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}


def _together(spec: Json, kind: str) -> Amounts:
    """Containers and sidecars run side by side, initial containers one after the other before them."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = added(total, _asked(container, kind))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = added(sidecars, _asked(container, kind))
        if container.get("restartPolicy") == "Always":
            sidecars = own
        peak = _higher(peak, own)
    return added(_higher(added(total, sidecars), peak), _quantities(spec.get("overhead")))


def _asked(container: Json, kind: str) -> Amounts:
    return _quantities((container.get("resources") or {}).get(kind))


def _quantities(document: Mapping[str, Any] | None) -> Amounts:
    return {name: Quantity.from_wire(value) for name, value in (document or {}).items()}


def _higher(left: Amounts, right: Amounts) -> Amounts:
    return {**left, **{name: max(left.get(name, amount), amount) for name, amount in right.items()}}


def unspecified(names: Iterable[str], pod: Json) -> str:
    """Returns the requests and limits that containers lack, in Kubernetes' words; empty if none is missing."""
    spec = pod["spec"]
    missing: dict[str, list[str]] = {}
    for name in sorted(_SPECIFIED & set(names)):
        kind, _, resource = name.rpartition(".")
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            if resource not in ((container.get("resources") or {}).get(kind or "requests") or {}):
                missing.setdefault(name, []).append(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(containers))}" for name, containers in missing.items())


def in_scope(spec: Json, group: str, plural: str, value: Json) -> bool:
    """Returns True if a quota counts the object; one with scopes counts only pods and claims that match all scopes."""
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    if not scopes:
        return True
    if (group, plural) == ("", "persistentvolumeclaims"):
        return all(each["scopeName"] == "VolumeAttributesClass" and _has_attributes(each, value) for each in scopes)
    return (group, plural) == ("", "pods") and all(_is_meant(scope, value["spec"]) for scope in scopes)


def _has_attributes(scope: Json, claim: Json) -> bool:
    """A claim has the attributes that it asks for, those that it has, and those that it is being given."""
    status = claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    named = (claim["spec"].get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return any(_has_class(scope, name) for name in {each for each in named if each} or {""})


def _is_meant(scope: Json, spec: Json) -> bool:
    match scope["scopeName"]:
        case "Terminating":
            return (spec.get("activeDeadlineSeconds") or -1) >= 0
        case "NotTerminating":
            return (spec.get("activeDeadlineSeconds") or -1) < 0
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(spec)
        case "PriorityClass":
            return _has_class(scope, spec.get("priorityClassName") or "")
        case _:
            return False


def _is_best_effort(spec: Json) -> bool:
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    asked = [{**_asked(each, "requests"), **_asked(each, "limits")} for each in containers]
    return not any(each.get(name) for each in asked for name in ("cpu", "memory"))


def _looks_elsewhere(spec: Json) -> bool:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(kind) or {}
        terms = list(found.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = found.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each["podAffinityTerm"] for each in preferred]
        if any(each.get("namespaces") or each.get("namespaceSelector") is not None for each in terms):
            return True
    return False


def _has_class(scope: Json, name: str) -> bool:
    match scope["operator"]:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in (scope.get("values") or ())
        case _:
            return name not in (scope.get("values") or ())


# Others


def _used_by_service(spec: Json) -> Amounts:
    kind, ports = spec.get("type"), Quantity(len(spec.get("ports") or ()))
    found: Amounts = {"services.nodeports": Quantity(0), "services.loadbalancers": Quantity(0)}
    if kind == "LoadBalancer":
        has_node_ports = spec.get("allocateLoadBalancerNodePorts") is not False
        return {"services.nodeports": ports if has_node_ports else Quantity(0), "services.loadbalancers": _ONE}
    return {**found, "services.nodeports": ports} if kind == "NodePort" else found


def _used_by_claim(claim: Json) -> Amounts:
    size = _quantities((claim["spec"].get("resources") or {}).get("requests")).get("storage", Quantity(0))
    annotations = claim["metadata"].get("annotations") or {}
    storage = annotations.get(_CLASS_BETA, claim["spec"].get("storageClassName"))
    found: Amounts = {"requests.storage": size}
    if storage:
        found[f"{storage}{_OF_CLASS}requests.storage"] = size
        found[f"{storage}{_OF_CLASS}persistentvolumeclaims"] = _ONE
    return found


def _used_by_device_claim(spec: Json) -> Amounts:
    """Returns the devices of each class; of alternatives, the maximum."""
    total: Amounts = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        most: Amounts = {}
        for each in request.get("firstAvailable") or [request.get("exactly") or {}]:
            number = _MOST_DEVICES if each.get("allocationMode") == "All" else each.get("count") or 1
            most = _higher(most, {f"{each.get('deviceClassName', '')}{_DEVICES}": Quantity(number)})
        total = added(total, most)
    return total
