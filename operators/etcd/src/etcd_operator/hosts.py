"""Which servers the operator does not talk to, whoever names them: those that give credentials to a machine."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Final
from urllib.parse import urlsplit

__all__ = ["why_not_at"]

_SECONDS: Final = 5.0
_METADATA: Final = frozenset(map(ipaddress.ip_address, ("168.63.129.16", "100.100.100.200", "fd00:ec2::254")))
"""Those of clouds that are at no link-local address."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


async def why_not_at(url: str) -> str:
    """Why that URL is not taken as an endpoint; empty if it is.

    The name is resolved as the system does it, so that a name of such a server, or another form of its address, is known
    too. A name that leads elsewhere a moment later is not: that takes a NetworkPolicy.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return _unreadable(url)
    if parts.scheme not in {"http", "https"} or not host or parts.username is not None or parts.query or parts.fragment:
        return _unreadable(url)
    if any(_is_of_machine(address) for address in await _addresses(host, port or 443)):
        return f"{host} is an address of the machine's own, such as a cloud's metadata server: name another endpoint"
    return ""


def _unreadable(url: str) -> str:
    """A user, a query and a fragment may hold what is secret, and are not repeated."""
    shown = url.partition("://")[2].rpartition("@")[2].partition("?")[0].partition("#")[0][:100]
    return f"expected an endpoint such as https://store.example.com, without user, query and fragment, got {shown!r}"


async def _addresses(host: str, port: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """All of a name; none if it is not known, or not in time: the client says so in its own words."""
    try:
        async with asyncio.timeout(_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port)
    except (OSError, UnicodeError, TimeoutError):
        return []
    return [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]


def _is_of_machine(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return _is_of_machine(inner)
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA
