"""Checks of Ingresses, their classes, NetworkPolicies and EndpointSlices."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final

from navarch.api.names import DNS_1035_LABEL, DNS_LABEL, DNS_SUBDOMAIN
from navarch.cluster.server.builtin.checks.common import (
    address,
    address_range,
    choice,
    named,
    node_port_or_name,
    required_name,
)
from navarch.cluster.server.causes import duplicate, forbidden, invalid, required, unsupported
from navarch.cluster.server.metadata import immutable_faults, selector_faults
from navarch.cluster.server.request import Json
from navarch.errors import Cause

__all__ = [
    "address_name_faults",
    "check_ingress",
    "check_ingress_class",
    "check_ingress_class_update",
    "check_network_policy",
    "check_slice",
    "check_slice_update",
]

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_UNWANTED: Final = ("//", "/./", "/../", "%2f", "%2F")
_UNWANTED_ENDS: Final = ("/..", "/.")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_DOMAIN_PATH: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def check_ingress(value: Json) -> Iterator[Cause]:
    """An Ingress."""
    spec = value["spec"]
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _check_rule(rule, f"spec.rules[{index}]")
    for index, each in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(each.get("hosts") or ()):
            yield from _check_host_name(host, f"spec.tls[{index}].hosts[{number}]")
    if spec.get("defaultBackend") is not None:
        yield from _check_backend(spec["defaultBackend"], "spec.defaultBackend")
    if spec.get("ingressClassName") is not None:
        yield from named(spec["ingressClassName"], "spec.ingressClassName")


def _check_rule(rule: Json, path: str) -> Iterator[Cause]:
    if host := rule.get("host"):
        yield from _check_host(host, f"{path}.host")
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        yield required(f"{path}.http.paths")
    for index, each in enumerate(http.get("paths") or ()):
        yield from _check_path(each, f"{path}.http.paths[{index}]")


def _check_host(host: str, field: str) -> Iterator[Cause]:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        yield from _check_host_name(host, field)
    else:
        yield invalid(field, host, "must be a DNS name, not an IP address")


def _check_host_name(host: str, field: str) -> Iterator[Cause]:
    if not host.startswith("*."):
        yield from named(host, field)
    else:
        for said in DNS_SUBDOMAIN.faults(host.removeprefix("*.")):
            yield invalid(field, host, said)


def _check_path(each: Json, path: str) -> Iterator[Cause]:
    kind, text = each.get("pathType"), each.get("path", "")
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield unsupported(f"{path}.pathType", kind, _PATH_TYPES)
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            yield invalid(f"{path}.path", text, "must be an absolute path")
    else:
        yield from _check_path_text(text, f"{path}.path")
    yield from _check_backend(each["backend"], f"{path}.backend")


def _check_path_text(text: str, field: str) -> Iterator[Cause]:
    if not text.startswith("/"):
        yield invalid(field, text, "must be an absolute path")
        return
    for part in _UNWANTED:
        if part in text:
            yield invalid(field, text, f"must not contain '{part}'")
    for end in _UNWANTED_ENDS:
        if text.endswith(end):
            yield invalid(field, text, f"cannot end with '{end}'")


def _check_backend(backend: Json, path: str) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif service is None and resource is None:
        yield invalid(path, "", "resource or service backend is required")
    elif service is not None:
        yield from required_name(service.get("name"), f"{path}.service.name", _service_name_faults)
        yield from _check_backend_port(service.get("port") or {}, path)


def _service_name_faults(name: str) -> list[str]:
    return list(DNS_1035_LABEL.faults(name)) if DNS_LABEL.allows(name) else list(DNS_LABEL.faults(name))


def _check_backend_port(port: Json, path: str) -> Iterator[Cause]:
    if port.get("name") and port.get("number"):
        yield invalid(path, "", "cannot set both port name & port number")
    elif not port.get("name") and not port.get("number"):
        yield required(path, "port name or number is required")
    else:
        field = "name" if port.get("name") else "number"
        yield from node_port_or_name(port[field], f"{path}.service.port.{field}")


def check_ingress_class(value: Json) -> Iterator[Cause]:
    """An IngressClass."""
    controller = value["spec"].get("controller", "")
    if controller and not _DOMAIN_PATH.fullmatch(controller):
        yield invalid("spec.controller", controller, 'must be a domain-prefixed path (such as "acme.io/foo")')


def check_ingress_class_update(value: Json, old: Json) -> list[Cause]:
    """The controller of a class never changes."""
    return immutable_faults(value["spec"].get("controller"), old["spec"].get("controller"), "spec.controller")


def check_network_policy(value: Json) -> Iterator[Cause]:
    """A NetworkPolicy."""
    spec = value["spec"]
    yield from selector_faults(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            place = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _check_policy_port(port, f"{place}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _check_peer(peer, f"{place}.{peers}[{number}]")
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        yield from choice(kind, f"spec.policyTypes[{index}]", ("Ingress", "Egress"))


def _check_policy_port(port: Json, path: str) -> Iterator[Cause]:
    yield from choice(port.get("protocol"), f"{path}.protocol", _PROTOCOLS)
    if port.get("port") is not None:
        yield from node_port_or_name(port["port"], f"{path}.port")


def _check_peer(peer: Json, path: str) -> Iterator[Cause]:
    for name in ("podSelector", "namespaceSelector"):
        yield from selector_faults(peer.get(name), f"{path}.{name}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from address_range(block.get("cidr", ""), f"{path}.ipBlock.cidr")
        if "podSelector" in peer or "namespaceSelector" in peer:
            yield forbidden(path, "may not specify both ipBlock and another peer")
    elif not peer:
        yield required(path, "must specify a peer")


def check_slice(value: Json) -> Iterator[Cause]:
    """An EndpointSlice."""
    kind = value.get("addressType")
    if not kind:
        yield required("addressType")
    else:
        yield from choice(kind, "addressType", ("FQDN", "IPv4", "IPv6"))
    for index, each in enumerate(value.get("endpoints") or ()):
        yield from _check_endpoint(each.get("addresses") or (), f"endpoints[{index}].addresses", kind or "")
    yield from _check_slice_ports(value.get("ports") or ())


def _check_endpoint(addresses: Any, path: str, kind: str) -> Iterator[Cause]:
    if not addresses:
        yield required(path, "must contain at least 1 address")
    for index, text in enumerate(addresses):
        if kind in {"IPv4", "IPv6"}:
            yield from address(text, f"{path}[{index}]")
        elif kind == "FQDN":
            yield from named(text, f"{path}[{index}]")


def _check_slice_ports(ports: Any) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name", "")
        if name:
            yield from named(name, f"ports[{index}].name", DNS_LABEL.faults)
        if name in seen:
            yield duplicate(f"ports[{index}].name", name)
        seen.add(name)
        yield from choice(port.get("protocol"), f"ports[{index}].protocol", _PROTOCOLS)


def check_slice_update(value: Json, old: Json) -> list[Cause]:
    """What its addresses are never changes."""
    return immutable_faults(value.get("addressType"), old.get("addressType"), "addressType")


def address_name_faults(name: str) -> list[str]:
    """The name of an IPAddress is the address, as everybody would write it.

    >>> address_name_faults("10.0.0.1"), address_name_faults("fe80::0042")
    ([], ['must be in canonical form ("fe80::42")'])
    """
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        is_padded = re.fullmatch(r"\d+(\.\d+){3}", name) and any(part != str(int(part)) for part in name.split("."))
        valid = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return ["must not have leading 0s" if is_padded else valid]
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if str(found) == name else [f'must be in canonical form ("{found}")']
