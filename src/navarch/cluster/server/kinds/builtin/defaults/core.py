"""Defaults of the other kinds of the core group."""

from __future__ import annotations

import base64
import ipaddress
from typing import Final

from navarch.cluster.server.kinds.builtin.defaults.pods import default_claim_spec, default_volume_source
from navarch.cluster.server.wire.request import Json

__all__ = [
    "default_endpoints",
    "default_families",
    "default_limit_range",
    "default_namespace",
    "default_node",
    "default_persistent_volume",
    "default_persistent_volume_claim",
    "default_secret",
    "default_service",
    "needs_health_port",
]

_INSIDE: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})
_OUTSIDE: Final = frozenset({"NodePort", "LoadBalancer"})
_AFFINITY_SECONDS: Final = 10800


def default_service(value: Json) -> None:
    """A Service; its addresses and node ports are given out later."""
    spec = value["spec"]
    kind = spec.setdefault("type", "ClusterIP")
    _default_affinity(spec)
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port["targetPort"] = port.get("targetPort") or port["port"]
    if kind in _OUTSIDE or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in _INSIDE:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in value["status"].get("loadBalancer", {}).get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def needs_health_port(spec: Json) -> bool:
    """Whether a load balancer has to know which nodes have a pod of the Service."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _default_affinity(spec: Json) -> None:
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def default_families(spec: Json, policy: str | None = None) -> None:
    """One family, unless there is nothing to select pods and no address: then both, for whoever fills it in.

    It is the last thing that a Service is given, so that nobody owns it. `policy` is the one that it had before.
    """
    if spec.get("type") == "ExternalName":
        return
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    elif spec.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    is_open = spec.get("clusterIP") == "None" and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", policy or ("RequireDualStack" if is_open else "SingleStack"))
    if is_open and spec["ipFamilyPolicy"] != "SingleStack":
        families = ["IPv4", "IPv6"]
    else:
        families = [_family(spec.get("clusterIP", ""))]
    spec.setdefault("ipFamilies", families)


def _family(address: str) -> str:
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return "IPv4"


def default_secret(value: Json) -> None:
    """A Secret: what was given as text becomes data."""
    value.setdefault("type", "Opaque")
    texts = value.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        value["data"] = {**(value.get("data") or {}), **encoded}


def default_namespace(value: Json) -> None:
    """A Namespace: a label with its name, so that selectors can name it."""
    name = value["metadata"].get("name")
    if name:
        labels = value["metadata"].get("labels") or {}
        value["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": name}
    value["status"].setdefault("phase", "Active")


def default_persistent_volume_claim(value: Json) -> None:
    """A PersistentVolumeClaim."""
    value["status"].setdefault("phase", "Pending")
    default_claim_spec(value["spec"])


def default_persistent_volume(value: Json) -> None:
    """A PersistentVolume."""
    spec = value["spec"]
    value["status"].setdefault("phase", "Pending")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_volume_source(spec)


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


def default_endpoints(value: Json) -> None:
    """Endpoints."""
    for subset in value.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def default_node(value: Json) -> None:
    """A Node."""
    spec, status = value["spec"], value["status"]
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not ranges or ranges[0] != first):
        ranges = spec["podCIDRs"] = [first]
    if ranges:
        spec["podCIDR"] = ranges[0]
    if status.get("capacity"):
        status.setdefault("allocatable", {**status["capacity"]})
