"""The proxy that the environment names, as Go programs understand it: HTTPS_PROXY, HTTP_PROXY, NO_PROXY."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from navarch.client.config.model import check_proxy

__all__ = ["environment_proxy"]


def environment_proxy(server: str, environment: Mapping[str, str] | None = None) -> str:
    """The proxy for `server`; empty if there is none, or if NO_PROXY or a loopback address says to go without.

    Raises ConfigError for one that cannot be used.

    >>> environment_proxy("https://api.example.com", {"HTTPS_PROXY": "http://proxy:3128"})
    'http://proxy:3128'
    >>> environment_proxy("https://10.1.2.3", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"})
    ''
    """
    environment = os.environ if environment is None else environment
    parts = urlsplit(server)
    variable = f"{parts.scheme}_proxy".upper()
    proxy = _either(environment, variable)
    host = parts.hostname or ""
    if not proxy or _is_loopback(host) or _is_excepted(host, parts.port, _either(environment, "NO_PROXY")):
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    check_proxy(proxy, "the environment", variable)
    return proxy


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "") or environment.get(name.lower(), "")


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excepted(host: str, port: int | None, exceptions: str) -> bool:
    return any(_covers(entry.strip().lower(), host, port) for entry in exceptions.split(",") if entry.strip())


def _covers(entry: str, host: str, port: int | None) -> bool:
    """One entry of NO_PROXY: `*`, a network, an address, a domain with its subdomains; a port may follow a name."""
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        return address is not None and _in_network(address, entry)
    name, colon, wanted = entry.rpartition(":")
    if colon and wanted.isdigit() and (":" not in name or name.endswith("]")):
        if int(wanted) != port:
            return False
        entry = name
    if address is not None:
        return _address(entry) == address
    domain = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not entry.startswith((".", "*")))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _in_network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
