"""Issues certificates and passwords: computes the Secrets that a cluster needs and does not have."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import CLIENT, PEER, SERVER, SecretKeys, client_host, host_of
from etcd_operator.tls.authority import AuthorityRotation, client_subject, member_subject
from etcd_operator.tls.checks import CredentialsError, read
from navarch.certificates import CertificateAuthority, CertificateSubject, hosts_of, is_due, is_signed_by

Found = Mapping[str, Mapping[str, bytes] | None]
"""The data of Secrets by name; None for a Secret that does not exist."""
_DOMAIN: Final = ".cluster.local"
_PASSWORD_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A certificate to issue, and its Secret."""

    secret: str
    side: Literal["peer", "client"]
    files: SecretKeys
    subject: CertificateSubject


def own_names(cluster: EtcdCluster) -> tuple[str, ...]:
    """Returns the names of the Secrets that the operator writes for a cluster."""
    names: list[str] = []
    if cluster.spec.tls is not None and cluster.spec.tls.issued is not None:
        names += [_authorities(cluster), *(leaf.secret for leaf in _leaves(cluster))]
    if cluster.spec.auth is not None and not cluster.spec.auth.root_secret:
        names.append(root_secret(cluster))
    return tuple(names)


def root_secret(cluster: EtcdCluster) -> str:
    """Returns the name of the Secret with root's password."""
    auth = cluster.spec.auth
    return auth.root_secret if auth is not None and auth.root_secret else f"{cluster.name}-root"


def issued(cluster: EtcdCluster, found: Found, now: datetime, *, known: bool) -> dict[str, dict[str, bytes]]:
    """Returns the Secrets to write, in this order; valid Secrets are left out.

    `known` means that every member was started with the currently trusted authorities.
    """
    wanted: dict[str, dict[str, bytes]] = {}
    if cluster.spec.tls is not None and cluster.spec.tls.issued is not None:
        valid = timedelta(days=cluster.spec.tls.issued.valid_for_days)
        wanted |= _certificates(cluster, found, now, valid, known=known)
    own = own_names(cluster)
    if root_secret(cluster) in own and not (found.get(root_secret(cluster)) or {}).get("password"):
        password = secrets.token_urlsafe(_PASSWORD_BYTES).encode()
        wanted[root_secret(cluster)] = {"username": b"root", "password": password}
    return wanted


def _certificates(
    cluster: EtcdCluster, found: Found, now: datetime, valid: timedelta, *, known: bool
) -> dict[str, dict[str, bytes]]:
    had = found.get(_authorities(cluster)) or {}
    lines = {
        side: AuthorityRotation.of(side, had, (found.get(secret) or {}).get(files.authorities, b"")).advanced(
            f"{cluster.name}-{side}-ca", now, known=known
        )
        for side, secret, files in _sources(cluster)
    }
    data = {key: value for line in lines.values() for key, value in line.data.items()}
    wanted = {_authorities(cluster): data} if data != had else {}
    for leaf in _leaves(cluster):
        line = lines[leaf.side]
        if line.signer is not None and not _is_good(leaf, line, line.signer, found.get(leaf.secret), now):
            wanted[leaf.secret] = _issue(leaf, line, line.signer, now, valid)
        elif line.signer is None:
            wanted |= _made_known(leaf, line, found.get(leaf.secret))
    return wanted


def forgotten(cluster: EtcdCluster, found: Found) -> tuple[str, ...]:
    """Returns the Secrets for which both the authority and the trusted certificates are lost."""
    if cluster.spec.tls is None or cluster.spec.tls.issued is None:
        return ()
    had = found.get(_authorities(cluster)) or {}
    lines = {
        secret: AuthorityRotation.of(side, had, (found.get(secret) or {}).get(files.authorities, b""))
        for side, secret, files in _sources(cluster)
    }
    return tuple(secret for secret, line in lines.items() if line.signer is None and not line.past)


def _sources(cluster: EtcdCluster) -> tuple[tuple[Literal["peer", "client"], str, SecretKeys], ...]:
    return (("peer", f"{cluster.name}-peer-tls", PEER), ("client", f"{cluster.name}-server-tls", SERVER))


def _is_good(
    leaf: _Leaf, line: AuthorityRotation, signer: CertificateAuthority, data: Mapping[str, bytes] | None, now: datetime
) -> bool:
    try:
        has = read(leaf.secret, leaf.files, data, now)
    except CredentialsError:
        return False
    first = has.chain[0]
    same = data is not None and data[leaf.files.authorities] == line.trusted
    signed = is_signed_by(has.chain, [signer.certificate])
    return same and signed and not is_due(first, now) and tuple(hosts_of(first)) == leaf.subject.hosts


def _issue(
    leaf: _Leaf, line: AuthorityRotation, signer: CertificateAuthority, now: datetime, valid: timedelta
) -> dict[str, bytes]:
    pair = signer.issue(leaf.subject, now, valid)
    return {
        leaf.files.authorities: line.trusted,
        leaf.files.certificate: pair.certificate,
        leaf.files.key: pair.key,
    }


def _made_known(leaf: _Leaf, line: AuthorityRotation, data: Mapping[str, bytes] | None) -> dict[str, dict[str, bytes]]:
    """Publishes the next authority where the signing key was lost; the old certificates stay until all members trust it."""
    if data is None or data.get(leaf.files.authorities) == line.trusted:
        return {}
    return {leaf.secret: {**data, leaf.files.authorities: line.trusted}}


def _authorities(cluster: EtcdCluster) -> str:
    return f"{cluster.name}-authorities"


def _leaves(cluster: EtcdCluster) -> tuple[_Leaf, ...]:
    name = cluster.name
    return (
        _Leaf(f"{name}-peer-tls", "peer", PEER, member_subject(f"{name}-peer", _peer_hosts(cluster))),
        _Leaf(f"{name}-server-tls", "client", SERVER, member_subject(f"{name}-server", _server_hosts(cluster))),
        _Leaf(f"{name}-operator-tls", "client", CLIENT, client_subject("etcd-operator")),
        _Leaf(f"{name}-client-tls", "client", CLIENT, client_subject(f"{name}-client")),
    )


def _peer_hosts(cluster: EtcdCluster) -> tuple[str, ...]:
    anybody = host_of(cluster, "*")
    return tuple(dict.fromkeys((anybody, f"*.{cluster.name}.{cluster.namespace}.svc{_DOMAIN}")))


def _server_hosts(cluster: EtcdCluster) -> tuple[str, ...]:
    host = client_host(cluster)
    short = f"{cluster.name}-client"
    names = (*_peer_hosts(cluster), host, f"{host}{_DOMAIN}", f"{short}.{cluster.namespace}", short, "localhost")
    return tuple(dict.fromkeys(names))
