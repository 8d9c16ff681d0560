"""Checks the certificates of Secrets. Error messages name the Secret and the key, never their contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from etcd_operator.manifests import SecretKeys
from navarch.certificates import hosts_of, is_key_of, is_signed_by, parse_certificates, parse_key


class CredentialsError(Exception):
    """The operator cannot use a Secret or an endpoint of the spec; the message names it and the cause."""


@dataclass(frozen=True, slots=True, repr=False)
class TlsSecret:
    """The parsed contents of a TLS Secret: the certificate chain, and the trusted authorities."""

    secret: str
    files: SecretKeys
    chain: Sequence[x509.Certificate]
    authorities: Sequence[x509.Certificate]

    def must_be_for(self, host: str) -> None:
        """Raises `CredentialsError` if the certificate does not name that host."""
        if not any(_covers(name, host) for name in hosts_of(self.chain[0])):
            raise CredentialsError(f"Secret {self.secret}: {self.files.certificate} does not name {host}")

    def must_prove_a_client(self) -> None:
        """Raises `CredentialsError` if the certificate has no client usage: etcd's gateway uses it as a client of its member."""
        try:
            usages = self.chain[0].extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        except x509.ExtensionNotFound:
            return
        if ExtendedKeyUsageOID.CLIENT_AUTH not in usages:
            raise CredentialsError(
                f"Secret {self.secret}: {self.files.certificate} needs the usage client authentication too"
            )

    def must_not_be_a_user(self) -> None:
        """Raises `CredentialsError` if the certificate has a common name: etcd's gateway refuses it with authentication."""
        if self.chain[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME):
            raise CredentialsError(
                f"Secret {self.secret}: {self.files.certificate} has a common name, which etcd's gateway refuses in a "
                "cluster with authentication; issue it without one"
            )

    def must_be_trusted_by(self, other: TlsSecret) -> None:
        """Raises `CredentialsError` if no authority of the other Secret signed this certificate."""
        if not is_signed_by(self.chain, other.authorities):
            raise CredentialsError(
                f"Secret {self.secret}: {self.files.certificate} is not signed by {other.files.authorities} of "
                f"Secret {other.secret}"
            )


def read(secret: str, files: SecretKeys, data: Mapping[str, bytes] | None, now: datetime) -> TlsSecret:
    """Parses and checks a TLS Secret; raises `CredentialsError`."""
    if data is None:
        raise CredentialsError(f"Secret {secret} does not exist; expected one with {_listed(files)}")
    for key in (files.authorities, files.certificate, files.key):
        if not data.get(key):
            raise CredentialsError(f"Secret {secret} has no {key}; expected {_listed(files)}")
    authorities = _parsed(secret, files.authorities, data)
    chain = _parsed(secret, files.certificate, data)
    _refuse_other_key(secret, files, data, chain[0])
    _refuse_wrong_time(secret, files, chain[0], now)
    return TlsSecret(secret, files, chain, authorities)


def _listed(files: SecretKeys) -> str:
    return f"{files.authorities}, {files.certificate} and {files.key}"


def _parsed(secret: str, key: str, data: Mapping[str, bytes]) -> Sequence[x509.Certificate]:
    found = parse_certificates(data[key])
    if not found:
        raise CredentialsError(f"Secret {secret}: {key} is not a certificate in PEM form")
    return found


def _refuse_other_key(secret: str, files: SecretKeys, data: Mapping[str, bytes], leaf: x509.Certificate) -> None:
    key = parse_key(data[files.key])
    if key is None:
        raise CredentialsError(f"Secret {secret}: {files.key} is not an unencrypted private key in PEM form")
    if not is_key_of(key, leaf):
        raise CredentialsError(f"Secret {secret}: {files.key} does not match {files.certificate}")


def _refuse_wrong_time(secret: str, files: SecretKeys, leaf: x509.Certificate, now: datetime) -> None:
    if now >= leaf.not_valid_after_utc:
        raise CredentialsError(f"Secret {secret}: {files.certificate} expired on {leaf.not_valid_after_utc:%Y-%m-%d}")
    if now < leaf.not_valid_before_utc:
        raise CredentialsError(f"Secret {secret}: {files.certificate} is not valid before {leaf.not_valid_before_utc}")


def _covers(name: str, host: str) -> bool:
    _, _, rest = host.partition(".")
    return name in {host, f"*.{rest}"}
