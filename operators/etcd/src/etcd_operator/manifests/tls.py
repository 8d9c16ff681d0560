"""Which Secrets a cluster's TLS takes, and how far it has come on its way there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from etcd_operator.kinds import EtcdCluster, MemberTls, StaticTls

__all__ = ["CLIENT", "PEER", "SERVER", "Files", "Mode", "SecretNames", "mode_of", "peers_are_secure", "secret_names"]

Mode = Literal["plain", "both", "secure"]
"""How members of a cluster can be reached. A cluster that runs in plain text goes through `both`: its members serve in
both ways, so that whoever still knows the old way, or is started anew, always finds them."""


@dataclass(frozen=True, slots=True)
class Files:
    """The keys of a Secret: whom one trusts, who one is, and the proof of that."""

    authorities: str
    certificate: str
    key: str


PEER: Final = Files("peer-ca.crt", "peer.crt", "peer.key")
SERVER: Final = Files("server-ca.crt", "server.crt", "server.key")
CLIENT: Final = Files("etcd-client-ca.crt", "etcd-client.crt", "etcd-client.key")


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


def mode_of(cluster: EtcdCluster) -> Mode:
    """What members are started with now. A cluster that has not formed yet begins with what is asked for."""
    if cluster.spec.tls is None:
        return "plain"
    return "secure" if cluster.status.secured or not cluster.status.cluster_id else "both"


def peers_are_secure(cluster: EtcdCluster) -> bool:
    """Whether a member that is new is reached with TLS by the others, from its first moment on."""
    return mode_of(cluster) == "secure" and bool(secret_names(cluster).peer)
