"""Configuration from the environment: that of a pod, and the proxy of HTTPS_PROXY, HTTP_PROXY and NO_PROXY."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from navarch.client.config.model import Config, check_proxy
from navarch.client.config.tls import FilePath
from navarch.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ORIGIN = "in-cluster configuration"


def is_in_cluster() -> bool:
    """Returns True if the environment is that of a pod."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT"))


def in_cluster(service_account: FilePath = SERVICE_ACCOUNT) -> Config:
    """Returns the configuration of the pod this runs in: its service account's token, CA and namespace.

    Raises ConfigError outside a pod, and in one without a mounted service account.
    """
    if not is_in_cluster():
        raise ConfigError(
            f"{_ORIGIN}: expected KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the environment, "
            f"got neither or only one. Outside a pod, use a kubeconfig."
        )
    folder = Path(service_account)
    for name in ("token", "ca.crt"):
        _check_file(folder / name)
    return Config(
        server=_server(os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]),
        namespace=os.environ.get("POD_NAMESPACE") or _namespace(folder),
        token_file=folder / "token",
        ca_file=folder / "ca.crt",
        origin=_ORIGIN,
    )


def _server(host: str, port: str) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise ConfigError(
            f"{_ORIGIN}: expected {path}, got no such file. "
            f"Is automountServiceAccountToken false in the pod or its service account?"
        )


def _namespace(folder: Path) -> str:
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or "default"
    except (OSError, ValueError):
        return "default"


def environment_proxy(server: str, environment: Mapping[str, str] | None = None) -> str:
    """Returns the proxy for `server`, as Go programs choose it; empty if there is none, for a loopback address, and for
    one in NO_PROXY.

    Raises ConfigError for a proxy that cannot be used.

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
    """Matches one entry of NO_PROXY: `*`, a network, an address, a domain with its subdomains; a port may follow a
    name.
    """
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
