"""Authorities, and what they sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "Pair", "Subject"]

_EARLIER: Final = timedelta(minutes=5)
"""Clocks differ."""
_USAGES: Final = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, slots=True, repr=False)
class Pair:
    """A certificate and its private key, in PEM form."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a certificate is for. A client has no hosts."""

    name: str
    hosts: tuple[str, ...] = ()

    @property
    def usages(self) -> tuple[str, ...]:
        """Members are clients too: of each other, and etcd's gateway of its own member."""
        return ("server", "client") if self.hosts else ("client",)


class Authority:
    """Signs certificates. Raises ValueError if the pair is not that of an authority."""

    def __init__(self, pair: Pair) -> None:
        key = serialization.load_pem_private_key(pair.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("expected a private key on an elliptic curve")  # noqa: TRY004 - one error for what is no authority
        self.pair = pair
        self.certificate = x509.load_pem_x509_certificate(pair.certificate)
        self._key = key

    @classmethod
    def make(cls, name: str, now: datetime, valid: timedelta) -> Self:
        """A new one."""
        key = _new_key()
        title = _title(name)
        builder = _builder(title, title, key.public_key(), now, now + valid)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    def issue(self, subject: Subject, now: datetime, valid: timedelta) -> Pair:
        """A certificate, which does not outlive the authority."""
        key = _new_key()
        end = min(now + valid, self.certificate.not_valid_after_utc)
        builder = _builder(_title_of(subject), self.certificate.subject, key.public_key(), now, end)
        builder = builder.add_extension(x509.ExtendedKeyUsage(_allowed(subject.usages)), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if subject.hosts:
            hosts = x509.SubjectAlternativeName([x509.DNSName(host) for host in subject.hosts])
            builder = builder.add_extension(hosts, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


_SIGNS: Final = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _allowed(usages: Sequence[str]) -> list[x509.ObjectIdentifier]:
    return [_USAGES[usage] for usage in usages]


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _title(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _title_of(subject: Subject) -> x509.Name:
    """A client has no common name: etcd would take it for a user's, and its gateway refuse it where there are users."""
    if subject.hosts:
        return _title(subject.name)
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.name[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(end)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(encoding), private)
