"""Defaults of Services, endpoints and the kinds of `networking.k8s.io`, and the fields of a Service that an update keeps."""

from __future__ import annotations

import ipaddress
from typing import Final

from navarch.cluster.server.objects.types import WriteContext
from navarch.cluster.server.wire.request import Json

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
    """Tells whether a Service needs a health check port: a load balancer that routes to nodes with local endpoints."""
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


def default_endpoints(value: Json) -> None:
    """Endpoints."""
    for subset in value.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def create_service(value: Json, _: WriteContext) -> None:
    """A new Service gets its families of addresses."""
    default_families(value["spec"])
    _drop_policy_of_names(value["spec"])


def update_service(value: Json, old: Json, _: WriteContext) -> None:
    """An update that says nothing about addresses and node ports keeps them; what its type has no use for goes."""
    _keep_what_is_given_out(value["spec"], old["spec"])
    default_families(value["spec"], old["spec"].get("ipFamilyPolicy"))
    _drop_policy_of_names(value["spec"])


def _drop_policy_of_names(spec: Json) -> None:
    """Kubernetes does not show where traffic to a mere name may go; what is no such place is refused before."""
    if spec.get("type") == "ExternalName" and spec.get("internalTrafficPolicy") in {"Cluster", "Local"}:
        del spec["internalTrafficPolicy"]


def _keep_what_is_given_out(spec: Json, before: Json) -> None:
    if spec.get("type") == "ExternalName":
        if before.get("type") != "ExternalName":
            _drop_unchanged(spec, before, ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"))
            _drop_unchanged(spec, before, ("internalTrafficPolicy", "externalTrafficPolicy"))
            _drop_node_ports(spec, before)
            _keep_health_port(spec, before)
        return
    if before.get("type") != "ExternalName":
        _keep_address(spec, before)
    if spec.get("type") not in _WITH_PORTS and before.get("type") in _WITH_PORTS:
        _drop_unchanged(spec, before, ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"))
        _drop_node_ports(spec, before)
    _keep_node_ports(spec, before)
    _keep_health_port(spec, before)


def _keep_health_port(spec: Json, before: Json) -> None:
    had, port = needs_health_port(before), before.get("healthCheckNodePort")
    if had and needs_health_port(spec):
        if port and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = port
    elif had and spec.get("healthCheckNodePort") == port:
        spec.pop("healthCheckNodePort", None)


def _drop_unchanged(spec: Json, before: Json, names: tuple[str, ...]) -> None:
    for name in names:
        if name in spec and spec[name] == before.get(name):
            del spec[name]


def _drop_node_ports(spec: Json, before: Json) -> None:
    taken = {port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        if port.get("nodePort") in taken:
            port.pop("nodePort", None)


def _keep_address(spec: Json, before: Json) -> None:
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec.pop("clusterIPs", None)
    if not spec.get("clusterIP"):
        spec.pop("clusterIP", None)
    if not (spec.get("clusterIP") or spec.get("clusterIPs")):
        spec |= {name: before[name] for name in ("clusterIP", "clusterIPs") if name in before}
    elif spec.get("clusterIP"):
        spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]


def _keep_node_ports(spec: Json, before: Json) -> None:
    if spec.get("type") not in _WITH_PORTS:
        return
    taken = {(port.get("protocol"), port["port"]): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        if not port.get("nodePort") and (kept := taken.get((port.get("protocol"), port["port"]))):
            port["nodePort"] = kept


def default_network_policy(value: Json) -> None:
    """A NetworkPolicy."""
    spec = value["spec"]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def default_ingress_class(value: Json) -> None:
    """An IngressClass."""
    parameters = value["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def default_endpoint_slice(value: Json) -> None:
    """An EndpointSlice."""
    for port in value.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
