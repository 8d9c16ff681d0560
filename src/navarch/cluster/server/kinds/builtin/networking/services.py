"""Checks of Services and of their status."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.cluster.server.kinds.builtin.generic.checks import (
    address,
    address_range,
    choice,
    named,
    node_port_or_name,
    port_number,
)
from navarch.cluster.server.kinds.builtin.networking.defaults import needs_health_port
from navarch.cluster.server.kinds.builtin.pods.containers import PROTOCOLS
from navarch.cluster.server.objects.metadata import label_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required, unsupported
from navarch.errors import Cause

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_LONGEST_AFFINITY: Final = 86400
_LOCAL: Final = ("Cluster", "Local")


def check_service(value: Json) -> Iterator[Cause]:
    """A Service."""
    spec = value["spec"]
    kind = spec.get("type")
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield required("spec.ports")
    yield from _check_ports(spec.get("ports") or [], spec)
    yield from _check_kind(spec, headless=headless)
    yield from label_faults(spec.get("selector"), "spec.selector")
    yield from _check_affinity(spec)
    yield from choice(kind, "spec.type", _TYPES)
    yield from _check_addresses(spec)
    yield from _check_families(spec)
    yield from _check_traffic(spec)


def _check_kind(spec: Json, *, headless: bool) -> Iterator[Cause]:
    match spec.get("type"):
        case "ExternalName":
            if spec.get("clusterIPs") or spec.get("clusterIP"):
                yield forbidden("spec.clusterIPs", "may not be set for ExternalName services")
            if not spec.get("externalName"):
                yield required("spec.externalName")
            else:
                yield from named(spec["externalName"].removesuffix("."), "spec.externalName", DNS_SUBDOMAIN.faults)
        case "LoadBalancer" | "NodePort" if headless:
            kind = spec["type"]
            yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
        case _:
            return


def _check_ports(ports: list[Json], spec: Json) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        place = f"spec.ports[{index}]"
        yield from _check_port_name(port, place, names, is_needed=len(ports) > 1)
        yield from port_number(port.get("port", 0), f"{place}.port")
        yield from choice(port.get("protocol"), f"{place}.protocol", PROTOCOLS)
        yield from node_port_or_name(port.get("targetPort", 0), f"{place}.targetPort")
        if spec.get("type") == "ClusterIP" and port.get("nodePort"):
            yield forbidden(f"{place}.nodePort", "may not be used when `type` is 'ClusterIP'")
    yield from _check_repeated_ports(ports)


def _check_port_name(port: Json, place: str, names: set[str], *, is_needed: bool) -> Iterator[Cause]:
    name = port.get("name")
    if not name:
        if is_needed:
            yield required(f"{place}.name")
        return
    faults = DNS_LABEL.faults(name)
    yield from (invalid(f"{place}.name", name, said) for said in faults)
    if not faults and name in names:
        yield duplicate(f"{place}.name", name)
    names.add(name)


def _check_repeated_ports(ports: list[Json]) -> Iterator[Cause]:
    seen: set[Any] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": port.get("protocol"),
                "AppProtocol": None,
                "Port": port.get("port"),
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _check_affinity(spec: Json) -> Iterator[Cause]:
    affinity = spec.get("sessionAffinity")
    if affinity not in {"ClientIP", "None"}:
        yield unsupported("spec.sessionAffinity", affinity or "", ("ClientIP", "None"))
    if affinity == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _LONGEST_AFFINITY:
            said = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            yield invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, said)


def _check_addresses(spec: Json) -> Iterator[Cause]:
    for index, text in enumerate(spec.get("externalIPs") or ()):
        field = f"spec.externalIPs[{index}]"
        faults = [*address(text, field)]
        yield from faults
        if not faults and ipaddress.ip_address(text).is_loopback:
            yield invalid(field, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if spec.get("type") != "ExternalName":
        for index, text in enumerate(spec.get("clusterIPs") or ()):
            if text != "None":
                yield from address(text, f"spec.clusterIPs[{index}]")
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from address_range(text.strip(), f"spec.LoadBalancerSourceRanges[{index}]")


def _check_families(spec: Json) -> Iterator[Cause]:
    yield from choice(spec.get("ipFamilyPolicy"), "spec.ipFamilyPolicy", _POLICIES)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        yield from choice(family, f"spec.ipFamilies[{index}]", _FAMILIES)


def _check_traffic(spec: Json) -> Iterator[Cause]:
    kind = spec.get("type")
    yield from choice(spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy", _LOCAL)
    outside = spec.get("externalTrafficPolicy")
    is_outside = kind in {"NodePort", "LoadBalancer"} or (kind == "ClusterIP" and spec.get("externalIPs"))
    if outside is not None and not is_outside:
        yield invalid("spec.externalTrafficPolicy", outside, "may only be set for externally-accessible services")
    elif is_outside:
        yield from choice(outside, "spec.externalTrafficPolicy", _LOCAL)
    if (port := spec.get("healthCheckNodePort")) and not needs_health_port(spec):
        said = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("spec.healthCheckNodePort", port, said)
    elif port:
        yield from port_number(port, "spec.healthCheckNodePort")
    if spec.get("loadBalancerClass") is not None and kind != "LoadBalancer":
        yield forbidden("spec.loadBalancerClass", "may only be used when `type` is 'LoadBalancer'")


def check_service_update(value: Json, old: Json) -> Iterator[Cause]:
    """Its address stays as long as it has one."""
    spec, before = value["spec"], old["spec"]
    if needs_health_port(spec) and needs_health_port(before):
        name = "healthCheckNodePort"
        if spec.get(name) != before.get(name):
            yield forbidden(f"spec.{name}", "field is immutable")
    addresses, then = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if "ExternalName" in {spec.get("type"), before.get("type")} or not then or not then[0]:
        return
    if addresses[:1] != then[:1]:
        yield invalid("spec.clusterIPs[0]", addresses, "may not change once set")


def service_warnings(value: Json, _: Json | None) -> list[str]:
    """Fields that mean nothing, or will be taken no more some day."""
    spec, said = value["spec"], []
    if spec.get("clusterIP") == "None":
        used = {name: spec.get(name) for name in ("loadBalancerIP", "externalIPs")}
        used["SessionAffinity"] = spec.get("sessionAffinity", "None") != "None"
        said += [f"spec.{name} is ignored for headless services" for name, given in used.items() if given]
    elif spec.get("externalIPs"):
        said.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("externalName") and spec.get("type") != "ExternalName":
        said.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return said


_MODES = ("Proxy", "VIP")


def service_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Only a load balancer has addresses of one."""
    ingress = ((value.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    field = "status.loadBalancer.ingress"
    if ingress and value["spec"].get("type") != "LoadBalancer":
        yield forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, each in enumerate(ingress):
        yield from _balancer_address(each, f"{field}[{index}]")


def _balancer_address(ingress: Json, path: str) -> Iterator[Cause]:
    address, mode, host = ingress.get("ip", ""), ingress.get("ipMode"), ingress.get("hostname", "")
    if address and not _is_address(address):
        yield invalid(f"{path}.ip", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    if mode is None:
        if address:
            yield required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not address:
        yield forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in _MODES:
        yield unsupported(f"{path}.ipMode", mode, _MODES)
    if host:
        yield from (invalid(f"{path}.hostname", host, said) for said in DNS_SUBDOMAIN.faults(host))
    if host and _is_address(host):
        yield invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
