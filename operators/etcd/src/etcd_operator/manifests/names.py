"""What everything is called. A member's name is that of its pod and of its claim, and the first part of its peer URL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from etcd_operator.kinds import EtcdCluster, IpFamily, MemberTls, StaticTls
from navarch.api import Object

TlsMode = Literal["plain", "both", "secure"]
"""How members of a cluster can be reached. A cluster that runs in plain text goes through `both`: its members serve in
both ways, so that whoever still knows the old way, or is started anew, always finds them."""


@dataclass(frozen=True, slots=True)
class SecretKeys:
    """The keys of a Secret: whom one trusts, who one is, and the proof of that."""

    authorities: str
    certificate: str
    key: str


PEER: Final = SecretKeys("peer-ca.crt", "peer.crt", "peer.key")
SERVER: Final = SecretKeys("server-ca.crt", "server.crt", "server.key")
CLIENT: Final = SecretKeys("etcd-client-ca.crt", "etcd-client.crt", "etcd-client.key")


@dataclass(frozen=True, slots=True)
class SecretNames:
    """The names of Secrets; empty where there is no TLS."""

    peer: str = ""
    server: str = ""
    operator: str = ""


def secret_names(cluster: EtcdCluster) -> SecretNames:
    """Somebody else's, or those that the operator issues."""
    tls = cluster.spec.tls
    if tls is None:
        return SecretNames()
    if tls.issued is not None:
        return SecretNames(f"{cluster.name}-peer-tls", f"{cluster.name}-server-tls", f"{cluster.name}-operator-tls")
    static = tls.static or StaticTls()
    member = static.member or MemberTls()
    return SecretNames(member.peer_secret, member.server_secret, static.operator_secret)


def mode_of(cluster: EtcdCluster) -> TlsMode:
    """What members are started with now. A cluster that has not formed yet begins with what is asked for."""
    if cluster.spec.tls is None:
        return "plain"
    return "secure" if cluster.status.secured or not cluster.status.cluster_id else "both"


def peers_are_secure(cluster: EtcdCluster) -> bool:
    """Whether a member that is new is reached with TLS by the others, from its first moment on."""
    return mode_of(cluster) == "secure" and bool(secret_names(cluster).peer)


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


def pod_name_of(peer_urls: Iterable[str]) -> str:
    """The pod of the member with these peer URLs.

    >>> pod_of(["http://example-0.example.default.svc:2380"])
    'example-0'
    """
    for url in peer_urls:
        host = urlsplit(url).hostname or ""
        return host.partition(".")[0]
    return ""
