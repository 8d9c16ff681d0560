"""Checks of Endpoints and EndpointSlices."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.cluster.server.kinds.builtin.generic.checks import address, choice, label_name, named, port_number, unique
from navarch.cluster.server.objects.metadata import immutable_faults, value_faults
from navarch.cluster.server.wire.causes import invalid, required, too_many
from navarch.cluster.server.wire.request import Json
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
    """What its addresses are never changes; endpoints that were taken once are not looked at again."""
    if (value.get("endpoints") or []) != (old.get("endpoints") or []):
        yield from check_new_slice(value)
    yield from immutable_faults(value.get("addressType"), old.get("addressType"), "addressType")
