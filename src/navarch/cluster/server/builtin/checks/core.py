"""Checks of ConfigMaps, Secrets, Namespaces, claims, volumes and the rest of the core group."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.builtin.checks.common import (
    NOT_NEGATIVE,
    address,
    address_range,
    choice,
    config_key,
    finalizer_name,
    label_name,
    named,
    port_number,
    resource_name,
)
from navarch.cluster.server.builtin.checks.pod_spec import EFFECTS
from navarch.cluster.server.causes import duplicate, forbidden, invalid, required, too_long, unsupported
from navarch.cluster.server.metadata import immutable_faults, selector_faults
from navarch.cluster.server.request import Json
from navarch.errors import Cause

__all__ = [
    "check_claim",
    "check_claim_update",
    "check_config_map",
    "check_endpoints",
    "check_event",
    "check_immutable",
    "check_limit_range",
    "check_namespace",
    "check_node",
    "check_quota",
    "check_secret",
    "check_secret_update",
    "check_volume",
    "check_volume_update",
    "endpoints_warnings",
    "secret_warnings",
]

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_NEEDED_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_CLAIM_UPDATES: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_VOLUME_FIELDS: Final = frozenset(
    {
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    }
)
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
_SCOPES: Final = frozenset(
    {
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    }
)
_MOST_DATA: Final = 2**20
_QUOTA_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


def check_config_map(value: Json) -> Iterator[Cause]:
    """A ConfigMap."""
    binary = value.get("binaryData") or {}
    for key in value.get("data") or ():
        yield from config_key(key, f"data[{key}]")
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from config_key(key, f"binaryData[{key}]")
    if _is_over([*(value.get("data") or {}).values()], [*binary.values()]):
        yield too_long("[]", _MOST_DATA)


def _is_over(texts: Sequence[str], encoded: Sequence[str]) -> bool:
    """Whether texts and bytes in base64 together are more than may be stored; most are so few that nobody has to count."""
    if 4 * sum(map(len, (*texts, *encoded))) <= _MOST_DATA:
        return False
    sizes = (*(len(text.encode()) for text in texts), *(len(base64.b64decode(each)) for each in encoded))
    return sum(sizes) > _MOST_DATA


def check_immutable(value: Json, old: Json) -> Iterator[Cause]:
    """A ConfigMap or Secret that was declared immutable stays as it is, and immutable."""
    if not old.get("immutable"):
        return
    if not value.get("immutable"):
        yield forbidden("immutable", _IMMUTABLE)
    for name in ("data", "binaryData"):
        if (value.get(name) or None) != (old.get(name) or None):
            yield forbidden(name, _IMMUTABLE)


def check_secret(value: Json) -> Iterator[Cause]:
    """A Secret: some types need some keys."""
    data, kind = value.get("data") or {}, value.get("type", "")
    for key in data:
        yield from config_key(key, f"data[{key}]")
    if _is_over((), [*data.values()]):
        yield too_long("data", _MOST_DATA)
    if kind == "kubernetes.io/service-account-token":
        if not (value["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & {*data}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _NEEDED_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif kind.startswith("kubernetes.io/dockerc"):
            yield from _check_docker(data[key], f"data[{key}]")


def _check_docker(encoded: str, field: str) -> Iterator[Cause]:
    text = base64.b64decode(encoded).decode(errors="replace").strip()
    try:
        json.loads(text)
    except ValueError:
        why = (
            f"invalid character '{text[0]}' looking for beginning of value" if text else "unexpected end of JSON input"
        )
        yield invalid(field, "<secret contents redacted>", why)


def check_secret_update(value: Json, old: Json) -> Iterator[Cause]:
    """A secret keeps its type."""
    yield from immutable_faults(value.get("type"), old.get("type"), "type")
    yield from check_immutable(value, old)


def secret_warnings(value: Json, _: Json | None) -> list[str]:
    """A pair of certificate and key that is none."""
    if value.get("type") != "kubernetes.io/tls":
        return []
    certificate = base64.b64decode((value.get("data") or {}).get("tls.crt", ""))
    return [] if b"-----BEGIN" in certificate else ["tls: failed to find any PEM data in certificate input"]


def check_namespace(value: Json) -> Iterator[Cause]:
    """A Namespace."""
    for name in value["spec"].get("finalizers") or ():
        yield from finalizer_name(name, "spec.finalizers")


def check_claim(value: Json) -> Iterator[Cause]:
    """A PersistentVolumeClaim."""
    yield from check_claim_spec(value["spec"], "spec")


def check_claim_spec(spec: Json, path: str) -> Iterator[Cause]:
    """The spec of a claim, or of a template of one."""
    if not spec.get("accessModes"):
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_faults(spec.get("selector"), f"{path}.selector")
    yield from _check_modes(spec, path)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required(f"{path}.resources[storage]")
    elif Quantity(storage) <= 0:
        yield invalid(f"{path}.resources[storage]", storage, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from named(spec["storageClassName"], f"{path}.storageClassName")
    yield from choice(spec.get("volumeMode"), f"{path}.volumeMode", _VOLUME_MODES)


def _check_modes(spec: Json, path: str) -> Iterator[Cause]:
    modes = spec.get("accessModes") or ()
    for mode in modes:
        yield from choice(mode, f"{path}.accessModes", _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")


def check_claim_update(value: Json, old: Json) -> Iterator[Cause]:
    """A claim changes only while it is bound, and then only in size; before, it may be given a volume or a class."""
    spec, before = value["spec"], old["spec"]
    bound = (old.get("status") or {}).get("phase") == "Bound"
    fixed = {**spec}
    if not before.get("volumeName") and "volumeName" in spec:
        fixed.pop("volumeName")
    if before.get("storageClassName") is None and "storageClassName" in spec:
        fixed.pop("storageClassName")
    if bound:
        fixed["resources"] = before.get("resources")
        fixed["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    then = {**before, **({"volumeAttributesClassName": before.get("volumeAttributesClassName")} if bound else {})}
    if fixed != then:
        yield forbidden("spec", _CLAIM_UPDATES)
    elif bound:
        yield from _check_shrinking(spec, before)


def _check_shrinking(spec: Json, before: Json) -> Iterator[Cause]:
    now, then = (((each.get("resources") or {}).get("requests") or {}).get("storage", "0") for each in (spec, before))
    if Quantity(now) < Quantity(then):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def check_volume(value: Json) -> Iterator[Cause]:
    """A PersistentVolume."""
    spec = value["spec"]
    capacity = spec.get("capacity")
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _check_modes(spec, "spec")
    if not capacity:
        yield required("spec.capacity")
    if set(capacity or ()) != {"storage"}:
        yield unsupported("spec.capacity", None if capacity is None else dict(sorted(capacity.items())), ("storage",))
    for name, amount in (capacity or {}).items():
        if Quantity(amount) <= 0:
            yield invalid(f"spec.capacity[{name}]", amount, "must be greater than zero")
    yield from choice(
        spec.get("persistentVolumeReclaimPolicy"),
        "spec.persistentVolumeReclaimPolicy",
        ("Delete", "Recycle", "Retain"),
    )
    yield from _check_volume_source(spec)
    if spec.get("storageClassName"):
        yield from named(spec["storageClassName"], "spec.storageClassName")
    yield from choice(spec.get("volumeMode"), "spec.volumeMode", _VOLUME_MODES)


def _check_volume_source(spec: Json) -> Iterator[Cause]:
    sources = [name for name in spec if name not in _VOLUME_FIELDS]
    if not sources:
        yield required("spec", "must specify a volume type")
    for name in sorted(sources, key=lambda each: each == "csi")[1:]:
        yield forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    if (host := spec.get("hostPath")) is not None:
        if not host.get("path"):
            yield required("spec.hostPath.path")
        elif ".." in host["path"].split("/"):
            yield invalid("spec.hostPath.path", host["path"], "must not contain '..'")
    if (driver := spec.get("csi")) is not None and sources == ["csi"]:
        for field in ("driver", "volumeHandle"):
            if not driver.get(field):
                yield required(f"spec.csi.{field}")


def check_volume_update(value: Json, old: Json) -> Iterator[Cause]:
    """Where a volume comes from never changes."""
    spec, before = value["spec"], old["spec"]
    sources = (spec.keys() | before.keys()) - _VOLUME_FIELDS
    if any(spec.get(name) != before.get(name) for name in sources):
        said = "spec.persistentvolumesource is immutable after creation"
        yield forbidden("spec.persistentvolumesource", said)
    yield from immutable_faults(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")


def check_limit_range(value: Json) -> Iterator[Cause]:
    """A LimitRange."""
    seen: set[str] = set()
    for index, item in enumerate(value["spec"].get("limits") or ()):
        place, kind = f"spec.limits[{index}]", item.get("type", "")
        if "/" not in kind and kind not in {"Pod", "Container", "PersistentVolumeClaim"}:
            yield invalid(f"{place}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield duplicate(f"{place}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if item.get(name):
                    yield forbidden(f"{place}.{name}", "may not be specified when `type` is 'Pod'")
        for name in ("max", "min"):
            for resource in item.get(name) or ():
                yield from resource_name(resource, f"{place}.{name}[{resource}]")
        yield from _check_bounds(item, place)


def _check_bounds(item: Json, path: str) -> Iterator[Cause]:
    """Least, requests, limits and most are in this order."""
    for resource, least in (item.get("min") or {}).items():
        most, limit = (item.get("max") or {}).get(resource), (item.get("default") or {}).get(resource)
        request = (item.get("defaultRequest") or {}).get(resource)
        if most is not None and Quantity(least) > Quantity(most):
            yield invalid(f"{path}.min[{resource}]", least, f"min value {least} is greater than max value {most}")
        if request is not None and Quantity(least) > Quantity(request):
            said = f"min value {least} is greater than default request value {request}"
            yield invalid(f"{path}.defaultRequest[{resource}]", request, said)
        if limit is not None and Quantity(least) > Quantity(limit):
            said = f"min value {least} is greater than default value {limit}"
            yield invalid(f"{path}.default[{resource}]", least, said)


def check_quota(value: Json) -> Iterator[Cause]:
    """A ResourceQuota."""
    for name, amount in (value["spec"].get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        yield from resource_name(name, field)
        plain = name.removeprefix("requests.").removeprefix("limits.")
        if "/" not in name and name not in _COUNTED and plain not in {*_QUOTA_RESOURCES, "storage"}:
            yield invalid(field, name, "must be a standard resource for quota")
        if Quantity(amount) < 0:
            yield invalid(field, amount, NOT_NEGATIVE)
        elif name in _COUNTED and Quantity(amount).milli_value % 1000:
            yield invalid(field, amount, "must be an integer")
    scopes = value["spec"].get("scopes") or ()
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")


def check_endpoints(value: Json) -> Iterator[Cause]:
    """Endpoints."""
    for index, subset in enumerate(value.get("subsets") or ()):
        place = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(place, "must specify `addresses` or `notReadyAddresses`")
        for name in ("addresses", "notReadyAddresses"):
            for number, each in enumerate(subset.get(name) or ()):
                yield from _check_endpoint(each.get("ip", ""), f"{place}.{name}[{number}].ip")
        yield from _check_endpoint_ports(subset.get("ports") or (), place)


def _check_endpoint(text: str, field: str) -> Iterator[Cause]:
    faults = [*address(text, field)]
    yield from faults
    if faults:
        yield invalid(field, text, "must be a valid IP address")


def _check_endpoint_ports(ports: Any, place: str) -> Iterator[Cause]:
    for number, port in enumerate(ports):
        if len(ports) > 1 and not port.get("name"):
            yield required(f"{place}.ports[{number}].name")
        yield from port_number(port.get("port", 0), f"{place}.ports[{number}].port")


def endpoints_warnings(_: Json, __: Json | None) -> list[str]:
    """Endpoints are on their way out."""
    return ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]


def check_event(value: Json) -> Iterator[Cause]:
    """An Event is where the object is that it is about."""
    about = (value.get("involvedObject") or value.get("regarding") or {}).get("namespace", "")
    own = value["metadata"].get("namespace", "")
    if about not in {own, ""} or (not about and own != "default"):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")


def check_node(value: Json) -> Iterator[Cause]:
    """A Node."""
    for index, taint in enumerate(value["spec"].get("taints") or ()):
        place = f"metadata.taints[{index}]"
        yield from label_name(taint.get("key", ""), f"{place}.key")
        yield from choice(taint.get("effect", ""), f"{place}.effect", EFFECTS)
    for index, text in enumerate(value["spec"].get("podCIDRs") or ()):
        yield from address_range(text, f"spec.podCIDRs[{index}]")
