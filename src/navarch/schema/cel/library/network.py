"""URLs, IP addresses and networks. Zones and IPv4 addresses written as IPv6 are refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import ClassVar
from urllib.parse import quote, unquote, unquote_plus

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelType

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)\Z", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*\Z")
_BRACKETED = re.compile(r"\[([^\[\]]*)\](:[0-9]*)?\Z")
_PLAIN_HOST = re.compile(r"([^:\[\]]*)(:[0-9]*)?\Z")
_HOST_CHARACTERS = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"]|%25|%[89a-fA-F][0-9a-fA-F]|[^\x00-\x7f])*\Z")
_VALID_PATH = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/%\[\]]*\Z")


@dataclass(frozen=True, slots=True)
class Url:
    cel_type: ClassVar[CelType] = types.URL
    scheme: str
    host: str
    path: str
    query: str
    fragment: str


def parse_url(text: str) -> Url:
    """Raises `ValueError` if it is no URL for a request."""
    _split(text, for_request=True)
    before, _, fragment = text.partition("#")
    if _BAD_ESCAPE.search(fragment):
        raise ValueError("its fragment has an incomplete escape")
    scheme, host, path, query = _split(before, for_request=False)
    return Url(scheme, host, path, query, fragment)


def _split(text: str, *, for_request: bool) -> tuple[str, str, str, str]:
    """The scheme, host, path and query."""
    if not text or _CONTROL.search(text) or text.startswith(":"):
        raise ValueError("it is empty, has control characters or begins with a colon")
    match = _SCHEME.match(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/") and text != "*":
        if not scheme:
            raise ValueError("it is neither absolute nor a path that begins with a slash")
        return scheme, "", "", query
    host = ""
    if rest.startswith("//") and (scheme or not (for_request or rest.startswith("///"))):
        authority, slash, tail = rest[2:].partition("/")
        host, rest = _host(authority), slash + tail
    if _BAD_ESCAPE.search(rest):
        raise ValueError("its path has an incomplete escape")
    return scheme, host, rest, query


def _host(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and (_USER.match(user) is None or _BAD_ESCAPE.search(user)):
        raise ValueError("its user information is malformed")
    bracketed = _BRACKETED.match(host)
    match = bracketed or _PLAIN_HOST.match(host)
    if match is None or _HOST_CHARACTERS.match(match[1]) is None:
        raise ValueError("its host or port is malformed")
    if bracketed:
        IPv6Address(bracketed[1].partition("%25")[0])
    return unquote(host)


def _url(text: str) -> Url:
    try:
        return parse_url(text)
    except ValueError as error:
        raise CelEvaluationError(f"{text!r} is no URL: {error}") from None


def is_url(text: str) -> bool:
    try:
        _split(text, for_request=True)
    except ValueError:
        return False
    return True


def _hostname(url: Url) -> str:
    match = _BRACKETED.match(url.host) or _PLAIN_HOST.match(url.host)
    return match[1] if match else url.host


def _port(url: Url) -> str:
    match = _BRACKETED.match(url.host) or _PLAIN_HOST.match(url.host)
    return (match[2] or "")[1:] if match else ""


def _escaped_path(url: Url) -> str:
    if _VALID_PATH.match(url.path):
        return url.path
    return quote(unquote(url.path, errors="surrogateescape"), safe="$&+,/:;=@-_.~", errors="surrogateescape")


def _query(url: Url) -> dict[str, list[str]]:
    """A part with a semicolon or an incomplete escape is left out."""
    found: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        if part and ";" not in part and not _BAD_ESCAPE.search(part):
            key, _, value = part.partition("=")
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


_URL_OVERLOADS = [
    function("url", "string -> url", _url),
    function("isURL", "string -> bool", is_url),
    method("getScheme", "url -> string", lambda url: url.scheme),
    method("getHost", "url -> string", lambda url: url.host),
    method("getHostname", "url -> string", _hostname),
    method("getPort", "url -> string", _port),
    method("getEscapedPath", "url -> string", _escaped_path),
    method("getQuery", "url -> map(string, list(string))", _query),
]


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
    *_URL_OVERLOADS,
]
