"""`EtcdCredentials`: the credentials for a cluster's etcd. `CredentialCache` reads them from Secrets, and renews them."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import CLIENT, PEER, SERVER, client_host, host_of, labels_of, secret_names
from etcd_operator.tls.checks import CredentialsError, TlsSecret, read
from etcd_operator.tls.issuer import Found, forgotten, issued, own_names, root_secret
from navarch import Context
from navarch.certificates import KeyPair
from navarch.errors import Forbidden, InvalidValueError
from navarch.etcd import EtcdTls
from navarch.k8s.core.v1 import Secret


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EtcdCredentials:
    """The operator's certificate, trusted authorities and login for one cluster.

    `faults` are messages about missing or wrong Secrets: no member starts then. `authorities` is a fingerprint of the
    authorities that members trust.
    """

    client: KeyPair | None = None
    trusted: bytes = b""
    server_name: str = ""
    user: str = ""
    password: str = ""
    authorities: str = ""
    faults: tuple[str, ...] = ()

    @contextmanager
    def tls(self) -> Iterator[EtcdTls | None]:
        """Writes the certificates to private files for the duration of the block; None without TLS."""
        if self.client is None:
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="etcd-operator-") as folder:
            texts = {"ca.crt": self.trusted, "tls.crt": self.client.certificate, "tls.key": self.client.key}
            files = {name: Path(folder, name) for name in texts}
            for name, text in texts.items():
                files[name].write_bytes(text)
            yield EtcdTls(
                ca_file=files["ca.crt"],
                certificate_file=files["tls.crt"],
                key_file=files["tls.key"],
                server_name=self.server_name,
            )


SECRETS_ROLE: Final = "etcd-operator-secrets"
"""The ClusterRole that a RoleBinding grants in each namespace whose Secrets the operator may use."""
_WHO: Final = re.compile(r'User "([^"\s]{1,512})" cannot ')
_ACCOUNT: Final = "system:serviceaccount:"
_LONGEST: Final = 300


def secret_access_denied(doing: str, namespace: str, error: Forbidden) -> str:
    """Returns the message for a refused access to a Secret, with the command that grants it if RBAC refused."""
    found = _WHO.search(error.message)
    if found is None:
        return f"the API server refused to {doing}: {error.message[:_LONGEST]}"
    who = found[1].removeprefix(_ACCOUNT)
    subject = f"--serviceaccount={who}" if found[1].startswith(_ACCOUNT) else f"--user={who}"
    command = (
        f"kubectl create rolebinding {SECRETS_ROLE} --namespace={namespace} --clusterrole={SECRETS_ROLE} {subject}"
    )
    return f"the operator is not allowed to {doing} in namespace {namespace}; to grant it: {command}"


_KEPT: Final = timedelta(minutes=5)
_MOMENT: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class _CachedCredentials:
    keys: EtcdCredentials
    generation: int | None
    read: datetime


class CredentialCache:
    """Caches the credentials of clusters.

    It reads valid Secrets again after five minutes, when the spec changes, and when no member answers; wrong ones each
    time.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _CachedCredentials] = {}

    async def keys(self, cluster: EtcdCluster, ctx: Context) -> EtcdCredentials:
        """Returns the credentials from the cluster's Secrets."""
        return self._known(cluster, ctx.now()) or await self._read(cluster, ctx, {})

    async def renew(self, cluster: EtcdCluster, ctx: Context, started_with: Iterable[str]) -> EtcdCredentials:
        """Issues and renews what is due, and returns the credentials.

        `started_with` contains the fingerprints of the authorities that pods were started with.
        """
        known = self._known(cluster, ctx.now())
        if known is not None:
            return known
        try:
            found = await _issue(cluster, ctx, set(started_with)) if own_names(cluster) else {}
        except CredentialsError as fault:
            return EtcdCredentials(faults=(str(fault),))
        return await self._read(cluster, ctx, found)

    async def of_secret(self, name: str, ctx: Context) -> EtcdCredentials:
        """Returns the credentials of a Secret with a client certificate; raises `CredentialsError`."""
        if not name:
            return EtcdCredentials()
        data = (await _secrets(ctx, [name]))[name]
        read(name, CLIENT, data, ctx.now())
        return _as_client(data or {})

    def invalidate(self, cluster: EtcdCluster, now: datetime) -> None:
        """Drops the cached credentials, unless they were read a moment ago: no member accepted them."""
        kept = self._kept.get(cluster.metadata.uid or "")
        if kept is not None and now - kept.read >= _MOMENT:
            del self._kept[cluster.metadata.uid or ""]

    def _known(self, cluster: EtcdCluster, now: datetime) -> EtcdCredentials | None:
        self._kept = {uid: each for uid, each in self._kept.items() if now - each.read < _KEPT}
        kept = self._kept.get(cluster.metadata.uid or "")
        return kept.keys if kept is not None and kept.generation == cluster.metadata.generation else None

    async def _read(self, cluster: EtcdCluster, ctx: Context, known: Found) -> EtcdCredentials:
        """Reads the Secrets that are not in `known`, and checks all."""
        names = secret_names(cluster)
        wanted = {names.peer, names.server, names.operator, root_secret(cluster) if cluster.spec.auth else ""} - {""}
        try:
            found = {**known, **await _secrets(ctx, sorted(wanted - known.keys()))}
        except CredentialsError as fault:
            return EtcdCredentials(faults=(str(fault),))
        keys = examined(cluster, found, ctx.now())
        if not keys.faults:
            self._kept[cluster.metadata.uid or ""] = _CachedCredentials(keys, cluster.metadata.generation, ctx.now())
        return keys


async def _secrets(ctx: Context, names: Iterable[str]) -> dict[str, Mapping[str, bytes] | None]:
    found: dict[str, Mapping[str, bytes] | None] = {}
    for name in names:
        secret = await _secret(ctx, name)
        found[name] = (secret.data or {}) if secret is not None else None
    return found


async def _secret(ctx: Context, name: str) -> Secret | None:
    try:
        return await ctx.get(Secret, name)
    except InvalidValueError as error:
        raise CredentialsError(f"the name of a Secret is invalid: {str(error)[:_LONGEST]}") from None
    except Forbidden as error:
        raise CredentialsError(secret_access_denied(f"get Secret {name}", ctx.key.namespace, error)) from None


async def _issue(cluster: EtcdCluster, ctx: Context, started_with: set[str]) -> Found:
    """Writes the Secrets that are due; returns the data of all that the operator issues."""
    had: dict[str, Secret | None] = {name: await _secret(ctx, name) for name in own_names(cluster)}
    for secret in had.values():
        _refuse_of_before(cluster, secret)
    found = {name: (secret.data or {}) if secret is not None else None for name, secret in had.items()}
    _refuse_distrust(forgotten(cluster, found), started_with)
    known = started_with <= {_fingerprint(cluster, found)}
    fresh = issued(cluster, found, ctx.now(), known=known)
    for name, data in fresh.items():
        _refuse_foreign(cluster, had[name])
        try:
            await ctx.apply(Secret(name=name, labels=labels_of(cluster), data=data))
        except Forbidden as error:
            raise CredentialsError(secret_access_denied(f"write Secret {name}", ctx.key.namespace, error)) from None
    return {**found, **fresh}


def _refuse_of_before(cluster: EtcdCluster, found: Secret | None) -> None:
    """Raises `CredentialsError` for a Secret of a deleted cluster of this name; the garbage collector removes it."""
    owners = {each.uid for each in (found.metadata.owner_references or ()) if each.controller} if found else set()
    if found is not None and owners - {cluster.metadata.uid}:
        raise CredentialsError(
            f"Secret {found.name} belongs to another cluster of this name: delete it if the garbage collector does not"
        )


def _refuse_distrust(lost: Sequence[str], started_with: set[str]) -> None:
    """Raises `CredentialsError` if the trust of running members is lost: they would not accept a new authority."""
    if lost and started_with - {""}:
        message = f"Secret {', '.join(lost)} does not exist, and running members trust only its authorities"
        raise CredentialsError(
            f"{message}: recreate it, or delete all pods at once, so that they start with new certificates"
        )


def _refuse_foreign(cluster: EtcdCluster, found: Secret | None) -> None:
    if found is not None and not labels_of(cluster).items() <= found.labels.items():
        raise CredentialsError(
            f"Secret {found.name} exists and does not belong to this cluster: the operator does not overwrite it"
        )


def examined(cluster: EtcdCluster, found: Found, now: datetime) -> EtcdCredentials:
    """Returns the credentials in a cluster's Secrets, with a message for each fault."""
    names = secret_names(cluster)
    faults: list[str] = []
    keys = EtcdCredentials(authorities=_fingerprint(cluster, found))
    if names.server:
        faults += _clients_faults(cluster, found, now)
        if not faults:
            keys = replace(_as_client(found[names.operator] or {}), authorities=keys.authorities)
            keys = replace(keys, server_name=client_host(cluster))
    if names.peer:
        faults += _peer_faults(cluster, found, now)
    if cluster.spec.auth is not None:
        password, fault = _password(cluster, found)
        keys = replace(keys, user="root" if password else "", password=password)
        faults += fault
    return replace(keys, faults=tuple(faults))


def _as_client(data: Mapping[str, bytes]) -> EtcdCredentials:
    return EtcdCredentials(client=KeyPair(data[CLIENT.certificate], data[CLIENT.key]), trusted=data[CLIENT.authorities])


def _clients_faults(cluster: EtcdCluster, found: Found, now: datetime) -> list[str]:
    names = secret_names(cluster)
    try:
        server = read(names.server, SERVER, found[names.server], now)
        operator = read(names.operator, CLIENT, found[names.operator], now)
        server.must_be_for(client_host(cluster))
        server.must_prove_a_client()
        _trust_each_other(server, operator)
        if cluster.spec.auth is not None:
            operator.must_not_be_a_user()
    except CredentialsError as fault:
        return [str(fault)]
    return []


def _trust_each_other(server: TlsSecret, operator: TlsSecret) -> None:
    server.must_be_trusted_by(operator)
    server.must_be_trusted_by(server)
    operator.must_be_trusted_by(server)


def _peer_faults(cluster: EtcdCluster, found: Found, now: datetime) -> list[str]:
    names = secret_names(cluster)
    try:
        peer = read(names.peer, PEER, found[names.peer], now)
        peer.must_be_for(host_of(cluster, f"{cluster.name}-0"))
        peer.must_prove_a_client()
        peer.must_be_trusted_by(peer)
    except CredentialsError as fault:
        return [str(fault)]
    return []


def _password(cluster: EtcdCluster, found: Found) -> tuple[str, list[str]]:
    name = root_secret(cluster)
    data = found.get(name)
    if data is None:
        return "", [f"Secret {name} does not exist; expected one with the password of root under `password`"]
    text = data.get("password", b"")
    try:
        return (text.decode(), []) if text else ("", [f"Secret {name} has no password"])
    except UnicodeDecodeError:
        return "", [f"Secret {name}: password is not UTF-8 text"]


def _fingerprint(cluster: EtcdCluster, found: Found) -> str:
    """Returns the fingerprint of the authorities that members trust."""
    names = secret_names(cluster)
    texts = [
        (found.get(names.peer) or {}).get(PEER.authorities, b""),
        (found.get(names.server) or {}).get(SERVER.authorities, b""),
    ]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16] if any(texts) else ""
