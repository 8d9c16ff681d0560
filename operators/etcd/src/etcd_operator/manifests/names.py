"""Names, labels, URLs and Secret names. A member's name is that of its pod and claim, and the first label of its host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from etcd_operator.kinds import EtcdCluster, IpFamily, MemberTls, StaticTls
from navarch.api import Object

TlsMode = Literal["plain", "both", "secure"]
"""The protocols that members serve. A cluster that changes to TLS goes through `both`, so that members that know only
the old URL, and restarted ones, always reach each other."""


@dataclass(frozen=True, slots=True)
class SecretKeys:
    """The keys of a TLS Secret: trusted authorities, certificate and private key."""

    authorities: str
    certificate: str
    key: str


PEER: Final = SecretKeys("peer-ca.crt", "peer.crt", "peer.key")
SERVER: Final = SecretKeys("server-ca.crt", "server.crt", "server.key")
CLIENT: Final = SecretKeys("etcd-client-ca.crt", "etcd-client.crt", "etcd-client.key")


@dataclass(frozen=True, slots=True)
class SecretNames:
    """The names of a cluster's TLS Secrets; empty without TLS."""

    peer: str = ""
    server: str = ""
    operator: str = ""


def secret_names(cluster: EtcdCluster) -> SecretNames:
    """Returns the Secrets of spec.TLS.static, or those that the operator issues."""
    tls = cluster.spec.tls
    if tls is None:
        return SecretNames()
    if tls.issued is not None:
        return SecretNames(f"{cluster.name}-peer-tls", f"{cluster.name}-server-tls", f"{cluster.name}-operator-tls")
    static = tls.static or StaticTls()
    member = static.member or MemberTls()
    return SecretNames(member.peer_secret, member.server_secret, static.operator_secret)


def mode_of(cluster: EtcdCluster) -> TlsMode:
    """Returns the TLS mode of new pods. A cluster that has not formed yet starts with the mode of the spec."""
    if cluster.spec.tls is None:
        return "plain"
    return "secure" if cluster.status.secured or not cluster.status.cluster_id else "both"


def peers_are_secure(cluster: EtcdCluster) -> bool:
    """Reports whether the peer URL of a new member uses TLS."""
    return mode_of(cluster) == "secure" and bool(secret_names(cluster).peer)


def url(scheme: str, host: str, port: int) -> str:
    """Returns a URL; an IPv6 address gets brackets.

    >>> url("http", "fd00::1", 2379)
    'http://[fd00::1]:2379'
    """
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def family_of(addresses: Iterable[str]) -> IpFamily:
    """Returns the IP family of the first address.

    >>> family_of(["", "None", "fd00::1"])
    'IPv6'
    """
    for address in addresses:
        if address and address != "None":
            return "IPv6" if ":" in address else "IPv4"
    return ""


def own_address(cluster: EtcdCluster) -> str:
    """Returns the variable of a pod's own address for etcd's flags, in brackets for IPv6.

    Kubernetes expands it without brackets, so the family must be known. A wildcard address would collide between pods
    that share a network.
    """
    return "[$(POD_IP)]" if cluster.status.ip_family == "IPv6" else "$(POD_IP)"


CLIENT_PORT: Final = 2379
PEER_PORT: Final = 2380
METRICS_PORT: Final = 2381
SECURE_PEER_PORT: Final = 2382
"""A port of its own: a cluster that changes to TLS serves plain text and TLS until all peer URLs have changed."""


def labels_of(cluster: EtcdCluster) -> dict[str, str]:
    """Returns the labels of a cluster's objects, as CoreOS' operator set them."""
    return {"app": "etcd", "etcd_cluster": cluster.name}


def is_of(cluster: EtcdCluster, found: Object) -> bool:
    """Reports whether the cluster owns the object; labels alone do not tell, as an earlier cluster may have left it."""
    return cluster.metadata.uid in {each.uid for each in found.metadata.owner_references or ()}


def member_name(cluster: EtcdCluster, taken: Iterable[str]) -> str:
    """Returns the first unused name: a new member never reuses objects of an old one."""
    used = set(taken)
    ordinal = 0
    while f"{cluster.name}-{ordinal}" in used:
        ordinal += 1
    return f"{cluster.name}-{ordinal}"


def ordinal_of(name: str) -> int:
    """Returns the ordinal of a member name."""
    _, _, digits = name.rpartition("-")
    return int(digits) if digits.isdecimal() else -1


def host_of(cluster: EtcdCluster, name: str) -> str:
    """Returns the host name of a member."""
    domain = cluster.spec.pod.cluster_domain if cluster.spec.pod else ""
    return f"{name}.{cluster.name}.{cluster.namespace}.svc{domain}"


def client_host(cluster: EtcdCluster) -> str:
    """Returns the host name of the client Service; the certificate of each member names it."""
    return f"{cluster.name}-client.{cluster.namespace}.svc"


def peer_url(cluster: EtcdCluster, name: str) -> str:
    """Returns the peer URL of a new member, which identifies it before it starts."""
    if peers_are_secure(cluster):
        return secure_peer_url(cluster, name)
    return f"http://{host_of(cluster, name)}:{PEER_PORT}"


def secure_peer_url(cluster: EtcdCluster, name: str) -> str:
    """Returns the peer URL of a member with TLS."""
    return f"https://{host_of(cluster, name)}:{SECURE_PEER_PORT}"


def pod_name_of(peer_urls: Iterable[str]) -> str:
    """Returns the pod name of the member with these peer URLs.

    >>> pod_name_of(["http://example-0.example.default.svc:2380"])
    'example-0'
    """
    for url in peer_urls:
        host = urlsplit(url).hostname or ""
        return host.partition(".")[0]
    return ""
