"""TLS and users: what they need before anything is started, and the way there for a cluster that runs without them."""

from __future__ import annotations

from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import mode_of, secret_names
from etcd_operator.observation import MemberSeen, Observation
from etcd_operator.planning.plan import Plan, stuck
from etcd_operator.planning.rolling import is_outdated
from etcd_operator.steps import AskWho, Secured, SecurePeer
from etcd_operator.versions import Version

__all__ = ["all_secure", "asking_who", "secrets_wrong", "securing", "stranger"]

_SOON: Final = 3.0
"""Nobody tells of Secrets: they are looked at again."""


def secrets_wrong(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Nothing is started in plain text, or with certificates that nobody would take, instead."""
    if seen.faults:
        return Plan("SecretsWrong", "; ".join(seen.faults), after=_SOON, stuck=True)
    if secret_names(cluster).server and not Version.of(cluster.spec.version).has_metrics_port:
        words = f"etcd {cluster.spec.version} has no port at which it can be probed without a certificate"
        return stuck("Unsupported", f"{words}: set spec.version to 3.3.0 or later, or leave TLS for clients out")
    return None


def stranger(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """The operator is not taken for root: what it says of its members could not be acted upon."""
    if seen.auth != "refused":
        return None
    if cluster.spec.auth is None:
        return stuck(
            "AccessRefused", "etcd asks for a password, and spec.auth is not set: set it, with root's password"
        )
    return stuck(
        "AccessRefused", "etcd refuses the password of root: put the one that it knows into the Secret of spec.auth"
    )


def all_secure(cluster: EtcdCluster, seen: Observation) -> bool:
    """Whether all members reach each other as is asked for."""
    return bool(seen.members) and not any(_is_plain(cluster, member) for member in seen.members)


def _is_plain(cluster: EtcdCluster, member: MemberSeen) -> bool:
    return bool(secret_names(cluster).peer) and not member.peer_url.startswith("https://")


def securing(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Every pod serves in both ways, and can go both: the others are told the new way to one member after the other."""
    old = any(is_outdated(cluster, pod) for pod in seen.pods.values())
    if mode_of(cluster) != "both" or old:
        return None
    for member in seen.members:
        if _is_plain(cluster, member):
            return Plan("Securing", f"{member.name} is reached with TLS by the others from now on", SecurePeer(member))
    return Plan("Securing", "all members reach each other with TLS: plain text is given up", Secured())


def asking_who(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """The first of etcd's users is root."""
    if seen.auth != "off":
        return None
    return Plan("Securing", "from now on nobody may do anything without a password", AskWho())
