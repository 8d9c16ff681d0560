"""IP addresses and networks. Zones and IPv4 addresses written as IPv6 are not taken."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import ClassVar

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelType

_PREFIX_LENGTH = re.compile(r"(?:0|[1-9][0-9]{0,2})\Z")
_BROADCAST = IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class Ip:
    cel_type: ClassVar[CelType] = types.IP
    address: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    cel_type: ClassVar[CelType] = types.CIDR
    interface: IPv4Interface | IPv6Interface


def _parse_ip(text: str) -> Ip:
    """Raises `ValueError`."""
    address = ip_address(text)
    if "%" in text or (isinstance(address, IPv6Address) and address.ipv4_mapped is not None):
        raise ValueError(text)
    return Ip(address)


def _parse_cidr(text: str) -> Cidr:
    """Raises `ValueError`."""
    address, _, length = text.partition("/")
    _parse_ip(address)
    if _PREFIX_LENGTH.match(length) is None:
        raise ValueError(text)
    return Cidr(ip_interface(text))


def _ip(text: str) -> Ip:
    try:
        return _parse_ip(text)
    except ValueError:
        raise CelEvaluationError(f"{text!r} is no IP address") from None


def _cidr(text: str) -> Cidr:
    try:
        return _parse_cidr(text)
    except ValueError:
        raise CelEvaluationError(f"{text!r} is no network; expected an address and a prefix length") from None


def _is_ip(text: str) -> bool:
    try:
        _parse_ip(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        _parse_cidr(text)
    except ValueError:
        return False
    return True


def _is_link_local_multicast(ip: Ip) -> bool:
    packed = ip.address.packed
    if ip.address.version == 4:
        return packed[:3] == bytes([224, 0, 0])
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


def _is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    excluded = (address.is_unspecified, address.is_loopback, address.is_multicast, _is_link_local_unicast(ip))
    return not any(excluded) and address != _BROADCAST


def _is_link_local_unicast(ip: Ip) -> bool:
    packed = ip.address.packed
    if ip.address.version == 4:
        return packed[:2] == bytes([169, 254])
    return packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return ip.address in cidr.interface.network


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    outer, inner = cidr.interface.network, other.interface.network
    return outer.version == inner.version and outer.prefixlen <= inner.prefixlen and inner.network_address in outer


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(ip_interface(str(cidr.interface.network)))


OVERLOADS = [
    function("ip", "string -> ip", _ip),
    function("isIP", "string -> bool", _is_ip),
    function("ip.isCanonical", "string -> bool", lambda text: str(_ip(text).address) == text),
    function("string", "ip -> string", lambda ip: str(ip.address)),
    method("family", "ip -> int", lambda ip: ip.address.version),
    method("isUnspecified", "ip -> bool", lambda ip: ip.address.is_unspecified),
    method("isLoopback", "ip -> bool", lambda ip: ip.address.is_loopback),
    method("isLinkLocalMulticast", "ip -> bool", _is_link_local_multicast),
    method("isLinkLocalUnicast", "ip -> bool", _is_link_local_unicast),
    method("isGlobalUnicast", "ip -> bool", _is_global_unicast),
    function("cidr", "string -> cidr", _cidr),
    function("isCIDR", "string -> bool", _is_cidr),
    function("string", "cidr -> string", lambda cidr: cidr.interface.with_prefixlen),
    method("containsIP", "cidr, string -> bool", lambda cidr, text: _contains_ip(cidr, _ip(text))),
    method("containsIP", "cidr, ip -> bool", _contains_ip),
    method("containsCIDR", "cidr, string -> bool", lambda cidr, text: _contains_cidr(cidr, _cidr(text))),
    method("containsCIDR", "cidr, cidr -> bool", _contains_cidr),
    method("ip", "cidr -> ip", lambda cidr: Ip(cidr.interface.ip)),
    method("prefixLength", "cidr -> int", lambda cidr: cidr.interface.network.prefixlen),
    method("masked", "cidr -> cidr", _masked),
]
