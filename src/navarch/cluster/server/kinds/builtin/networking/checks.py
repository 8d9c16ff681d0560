"""Checks of Endpoints, EndpointSlices, NetworkPolicies, ServiceCIDRs and IPAddresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.cluster.server.kinds.builtin.generic.checks import (
    address,
    address_range,
    choice,
    label_name,
    named,
    node_port_or_name,
    port_number,
    unique,
)
from navarch.cluster.server.objects.metadata import immutable_faults, selector_faults, value_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, too_many
from navarch.errors import Cause


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


_SORTED_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MOST_HINTS: Final = 8
_VERSIONS: Final = {"IPv4": 4, "IPv6": 6}
_LOCAL_GROUPS: Final = {4: "224.0.0.0/24", 6: "ff02::/16"}


def check_slice(value: Json) -> Iterator[Cause]:
    """An EndpointSlice."""
    kind = value.get("addressType")
    if not kind:
        yield required("addressType")
    else:
        yield from choice(kind, "addressType", ("FQDN", "IPv4", "IPv6"))
    yield from _check_slice_ports(value.get("ports") or ())


def check_new_slice(value: Json) -> Iterator[Cause]:
    """The endpoints of an EndpointSlice."""
    for index, each in enumerate(value.get("endpoints") or ()):
        yield from _check_slice_endpoint(each, f"endpoints[{index}]", value.get("addressType", ""))


def slice_warnings(value: Json, old: Json | None) -> list[str]:
    """Names instead of addresses are on their way out."""
    is_new = old is None and value.get("addressType") == "FQDN"
    return ["spec.addressType: FQDN endpoints are deprecated"] if is_new else []


def _check_slice_endpoint(endpoint: Json, path: str, kind: str) -> Iterator[Cause]:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    for index, text in enumerate(addresses):
        if kind == "FQDN":
            yield from _check_full_name(text, f"{path}.addresses[{index}]")
        elif kind in _VERSIONS:
            yield from _check_address(text, f"{path}.addresses", index, kind)
    if endpoint.get("nodeName") is not None:
        yield from named(endpoint["nodeName"], f"{path}.nodeName")
    if endpoint.get("hostname") is not None:
        yield from named(endpoint["hostname"], f"{path}.hostname", DNS_LABEL.faults)
    yield from _check_hints(endpoint.get("hints") or {}, f"{path}.hints")


def _check_address(text: str, path: str, index: int, kind: str) -> Iterator[Cause]:
    """An address of that version which other machines can reach, or of a process of this one."""
    faults = [*address(text, f"{path}[{index}]")]
    yield from faults
    if faults:
        return
    found = ipaddress.ip_address(text)
    if found.version != _VERSIONS[kind]:
        yield invalid(path, text, f"must be an {kind} address")
    for is_so, said in (
        (found.is_unspecified, f"may not be unspecified ({text})"),
        (found.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (_is_local_group(found), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ):
        if is_so:
            yield invalid(f"{path}[{index}]", text, said)


def _is_local_group(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    groups = _LOCAL_GROUPS[found.version]
    return found in ipaddress.ip_network(groups)


def _check_full_name(text: str, field: str) -> Iterator[Cause]:
    """A name of a domain that has more than one part."""
    if not text:
        yield required(field)
        return
    name = text.removesuffix(".")
    faults = DNS_SUBDOMAIN.faults(name)
    if faults:
        yield invalid(field, name, ",".join(faults))
    elif "." not in name:
        yield invalid(field, name, "should be a domain with at least two segments separated by dots")


def _check_hints(hints: Json, path: str) -> Iterator[Cause]:
    for name, faults in (("forZones", value_faults), ("forNodes", DNS_SUBDOMAIN.faults)):
        places = hints.get(name) or ()
        if len(places) > _MOST_HINTS:
            yield too_many(f"{path}.{name}", len(places), _MOST_HINTS)
            return
        yield from unique((each.get("name", ""), f"{path}.{name}[{index}].name") for index, each in enumerate(places))
        for index, each in enumerate(places):
            yield from named(each.get("name", ""), f"{path}.{name}[{index}].name", faults)


def _check_slice_ports(ports: Any) -> Iterator[Cause]:
    yield from unique((port.get("name", ""), f"ports[{index}].name") for index, port in enumerate(ports))
    for index, port in enumerate(ports):
        if port.get("name"):
            yield from named(port["name"], f"ports[{index}].name", DNS_LABEL.faults)
        yield from choice(port.get("protocol"), f"ports[{index}].protocol", _SORTED_PROTOCOLS)
        if port.get("appProtocol") is not None:
            yield from label_name(port["appProtocol"], f"ports[{index}].appProtocol")


def check_slice_update(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses a changed address type; checks endpoints only if they changed."""
    if (value.get("endpoints") or []) != (old.get("endpoints") or []):
        yield from check_new_slice(value)
    yield from immutable_faults(value.get("addressType"), old.get("addressType"), "addressType")


_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_DIRECTIONS: Final = ("Ingress", "Egress")
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


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
    if len(spec.get("policyTypes") or ()) > len(_DIRECTIONS):
        yield invalid("spec.policyTypes", spec["policyTypes"], "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        yield from choice(kind, f"spec.policyTypes[{index}]", _DIRECTIONS)


def _check_policy_port(port: Json, path: str) -> Iterator[Cause]:
    yield from choice(port.get("protocol"), f"{path}.protocol", _PROTOCOLS)
    first, last = port.get("port"), port.get("endPort")
    if first is not None:
        yield from node_port_or_name(first, f"{path}.port")
    if last is None:
        return
    if not isinstance(first, int):
        why = "is not specified" if first is None else "is non-numeric"
        yield invalid(f"{path}.endPort", last, f"may not be specified when `port` {why}")
        return
    if last < first:
        yield invalid(f"{path}.endPort", first, "must be greater than or equal to `port`")
    yield from port_number(last, f"{path}.endPort")


def _check_peer(peer: Json, path: str) -> Iterator[Cause]:
    for name in ("podSelector", "namespaceSelector"):
        yield from selector_faults(peer.get(name), f"{path}.{name}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from _check_block(block, f"{path}.ipBlock")
        if "podSelector" in peer or "namespaceSelector" in peer:
            yield forbidden(path, "may not specify both ipBlock and another peer")
    elif not peer:
        yield required(path, "must specify a peer")


def _check_block(block: Json, path: str) -> Iterator[Cause]:
    """A range of addresses, and those of them that are not meant."""
    text = block.get("cidr", "")
    if not text:
        yield required(f"{path}.cidr")
        return
    yield from address_range(text, f"{path}.cidr")
    if (whole := _network(text)) is None:
        return
    for index, except_ in enumerate(block.get("except") or ()):
        yield from address_range(except_, f"{path}.except[{index}]")
        part = _network(except_)
        if part is not None and not _is_inside(part, whole):
            yield invalid(f"{path}.except[{index}]", except_, "must be a strict subset of `cidr`")


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _is_inside(part: _Network, whole: _Network) -> bool:
    return part.network_address in whole and part.prefixlen > whole.prefixlen


def check_service_range_update(value: Json, old: Json) -> Iterator[Cause]:
    """The addresses of Services stay as they are; a second family may join them."""
    now, before = value["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
    joins = len(before) == 1 and len(now) == len(_VERSIONS)
    yield from immutable_faults(now[:1] if joins else now, before, "spec.cidrs")


def address_name_faults(name: str) -> list[str]:
    """The name of an IPAddress is the address, as everybody would write it.

    >>> address_name_faults("10.0.0.1"), address_name_faults("fe80::0042")
    ([], ['must be in canonical form ("fe80::42")'])
    """
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        is_padded = re.fullmatch(r"\d+(\.\d+){3}", name) and any(
            len(part) > 1 and part[0] == "0" for part in name.split(".")
        )
        valid = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return ["must not have leading 0s" if is_padded else valid]
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if str(found) == name else [f'must be in canonical form ("{found}")']
