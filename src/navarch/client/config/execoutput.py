"""What an exec plugin is told, and what it answers: the ExecCredential of client.authentication.k8s.io."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from navarch.client.config.model import Config, ExecPlugin
from navarch.client.config.tls import ClientCertificate, ca_certificates
from navarch.errors import CredentialError

_KIND = "ExecCredential"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A credential from a plugin: a token, a client certificate, or both, perhaps for a limited time."""

    token: str = ""
    certificate: ClientCertificate | None = None
    expires: datetime | None = None

    def __repr__(self) -> str:
        return f"Answer(expires={self.expires})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("expires", self.expires)]


class _Type(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct):
    status: _Status | None = None


def question(plugin: ExecPlugin, config: Config, *, interactive: bool) -> str:
    """The value of KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster(plugin, config)
    info = {"apiVersion": plugin.api_version, "kind": _KIND, "spec": spec}
    return msgspec.json.encode(info).decode()


def _cluster(plugin: ExecPlugin, config: Config) -> dict[str, Any]:
    cluster: dict[str, Any] = {
        "server": config.server,
        "tls-server-name": config.tls_server_name,
        "insecure-skip-tls-verify": config.insecure_skip_verify,
        "certificate-authority-data": base64.b64encode(ca_certificates(config)).decode(),
        "proxy-url": config.proxy_url,
        "disable-compression": not config.compression,
        "config": msgspec.Raw(plugin.cluster_extension) if plugin.cluster_extension else None,
    }
    return {key: value for key, value in cluster.items() if value or key == "server"}


def answer(output: bytes, plugin: ExecPlugin, where: str) -> Answer:
    """The credential that a plugin printed; CredentialError says what was expected instead, never what was printed."""
    _check_type(output, plugin, where)
    try:
        status = msgspec.json.decode(output, type=_ExecCredential).status
    except msgspec.ValidationError as error:
        raise CredentialError(f"{where}: expected an ExecCredential on standard output, got: {error}") from None
    if status is None:
        raise CredentialError(f"{where}: expected an ExecCredential with a status, got one without")
    if not status.token and not status.client_certificate_data and not status.client_key_data:
        raise CredentialError(f"{where}: expected a token, or a client certificate and its key, got neither")
    return Answer(
        token=status.token or "",
        certificate=_certificate(status, where),
        expires=status.expiration_timestamp and status.expiration_timestamp.astimezone(UTC),
    )


def _check_type(output: bytes, plugin: ExecPlugin, where: str) -> None:
    expected = f"{where}: expected an {_KIND} of {plugin.api_version} as JSON on standard output"
    if not output.strip():
        raise CredentialError(f"{expected}, got nothing")
    try:
        found = msgspec.json.decode(output, type=_Type)
    except msgspec.DecodeError as error:
        # Only a ValidationError's words are fixed; that of malformed JSON says where, and no more.
        raise CredentialError(f"{expected}, got {len(output)} bytes of something else: {error}") from None
    if found.kind != _KIND:
        raise CredentialError(f"{expected}, got kind {_name(found.kind)}")
    if found.api_version != plugin.api_version:
        raise CredentialError(
            f"{expected}, got apiVersion {_name(found.api_version)}. "
            f"Set apiVersion in the kubeconfig to what the plugin speaks."
        )


def _name(value: str) -> str:
    """A kind or version as it may be shown: what is too long for one may be a secret in the wrong place."""
    return repr(value) if len(value) <= 40 else f"of {len(value)} characters"


def _certificate(status: _Status, where: str) -> ClientCertificate | None:
    certificate, key = status.client_certificate_data, status.client_key_data
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "clientKeyData" if certificate else "clientCertificateData"
        raise CredentialError(f"{where}: expected a client certificate and its key, got no {missing}")
    return ClientCertificate(
        certificate=certificate.encode(),
        key=key.encode(),
        certificate_name=f"{where}: clientCertificateData",
        key_name=f"{where}: clientKeyData",
    )
