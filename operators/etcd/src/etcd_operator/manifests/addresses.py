"""Addresses of pods in URLs, which have those of IPv6 in brackets."""

from __future__ import annotations

from collections.abc import Iterable

from etcd_operator.kinds import EtcdCluster, IpFamily

__all__ = ["family_of", "own_address", "url"]


def url(scheme: str, host: str, port: int) -> str:
    """Where something is served.

    >>> url("http", "fd00::1", 2379)
    'http://[fd00::1]:2379'
    """
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def family_of(addresses: Iterable[str]) -> IpFamily:
    """Of the first that is one.

    >>> family_of(["", "None", "fd00::1"])
    'IPv6'
    """
    for address in addresses:
        if address and address != "None":
            return "IPv6" if ":" in address else "IPv4"
    return ""


def own_address(cluster: EtcdCluster) -> str:
    """A pod's own address, in the flags of its etcd. Kubernetes fills it in, and knows no brackets: its family has to be
    known before. A wildcard would not need it, but pods that share a network could not listen beside each other.
    """
    return "[$(POD_IP)]" if cluster.status.ip_family == "IPv6" else "$(POD_IP)"
