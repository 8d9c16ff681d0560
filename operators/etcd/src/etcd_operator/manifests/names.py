"""What everything is called. A member's name is that of its pod and of its claim, and the first part of its peer URL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests.tls import peers_are_secure
from navarch.api import Object

__all__ = [
    "CLIENT_PORT",
    "METRICS_PORT",
    "PEER_PORT",
    "SECURE_PEER_PORT",
    "client_host",
    "host_of",
    "is_of",
    "labels_of",
    "member_name",
    "ordinal_of",
    "peer_url",
    "pod_of",
    "secure_peer_url",
]

CLIENT_PORT: Final = 2379
PEER_PORT: Final = 2380
METRICS_PORT: Final = 2381
SECURE_PEER_PORT: Final = 2382
"""Of its own: a member whose cluster turns to TLS is reached in both ways until all others know the new one."""


def labels_of(cluster: EtcdCluster) -> dict[str, str]:
    """The labels of everything of a cluster, and of nothing else; CoreOS' own."""
    return {"app": "etcd", "etcd_cluster": cluster.name}


def is_of(cluster: EtcdCluster, found: Object) -> bool:
    """Whether the cluster owns it. An earlier one of its name, or somebody else, may have left what has its labels."""
    return cluster.metadata.uid in {each.uid for each in found.metadata.owner_references or ()}


def member_name(cluster: EtcdCluster, taken: Iterable[str]) -> str:
    """The first name that nothing has: a new member never meets what an old one has left behind."""
    used = set(taken)
    ordinal = 0
    while f"{cluster.name}-{ordinal}" in used:
        ordinal += 1
    return f"{cluster.name}-{ordinal}"


def ordinal_of(name: str) -> int:
    """The number at the end; names sort by it, not by their letters."""
    _, _, digits = name.rpartition("-")
    return int(digits) if digits.isdecimal() else -1


def host_of(cluster: EtcdCluster, name: str) -> str:
    """Where a member is found by the others."""
    domain = cluster.spec.pod.cluster_domain if cluster.spec.pod else ""
    return f"{name}.{cluster.name}.{cluster.namespace}.svc{domain}"


def client_host(cluster: EtcdCluster) -> str:
    """Where clients find the members that serve; the name that the certificate of each of them has."""
    return f"{cluster.name}-client.{cluster.namespace}.svc"


def peer_url(cluster: EtcdCluster, name: str) -> str:
    """How the other members reach a member that is new; its identity, from before it starts."""
    if peers_are_secure(cluster):
        return secure_peer_url(cluster, name)
    return f"http://{host_of(cluster, name)}:{PEER_PORT}"


def secure_peer_url(cluster: EtcdCluster, name: str) -> str:
    """How they reach it with TLS."""
    return f"https://{host_of(cluster, name)}:{SECURE_PEER_PORT}"


def pod_of(peer_urls: Iterable[str]) -> str:
    """The pod of the member with these peer URLs.

    >>> pod_of(["http://example-0.example.default.svc:2380"])
    'example-0'
    """
    for url in peer_urls:
        host = urlsplit(url).hostname or ""
        return host.partition(".")[0]
    return ""
