"""X.509 certificates: a `CertificateAuthority` issues them; functions parse and check them.

The time is always a parameter. Keys are on the curve P-256, which every TLS library of today supports. Imports
`cryptography`: import this module only where certificates are issued or checked.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, Self

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from navarch.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes, PrivateKeyTypes

__all__ = [
    "CertificateAuthority",
    "CertificateSubject",
    "KeyPair",
    "encode_certificates",
    "hosts_of",
    "is_due",
    "is_key_of",
    "is_signed_by",
    "parse_certificates",
    "parse_key",
    "renewal_time",
]

CLOCK_SKEW: Final = timedelta(minutes=5)
"""A certificate is valid from a little before its issue, because clocks differ."""
_LONGEST_CHAIN: Final = 5


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "<KeyPair: a certificate and its private key>"


class CertificateSubject(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of a certificate. Kubernetes reads a user from the common name and groups from the organizations."""

    common_name: str = ""
    """At most 64 characters; none if empty."""
    organizations: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """DNS names and IP addresses."""
    usages: tuple[Literal["server", "client"], ...] = ("server",)


class CertificateAuthority:
    """Signs certificates. Raises `ConfigError` for a pair that is no PEM certificate with its elliptic-curve key."""

    def __init__(self, pair: KeyPair) -> None:
        found, key = parse_certificates(pair.certificate), parse_key(pair.key)
        if not found or key is None:
            raise ConfigError("expected the certificate and the private key of an authority, as PEM")
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigError(f"expected a private key on an elliptic curve, got {type(key).__name__}")
        if not is_key_of(key, found[0]):
            raise ConfigError("expected the private key of the authority's certificate, got the key of another one")
        self.pair = pair
        self.certificate = found[0]
        self._key = key

    @classmethod
    def create(cls, name: str, now: datetime, lifetime: timedelta, *, skew: timedelta = CLOCK_SKEW) -> Self:
        """Creates a new authority; its certificate is valid from `now - skew` to `now + lifetime`."""
        key, title = _new_key(), _name(CertificateSubject(common_name=name))
        builder = _builder(title, title, key.public_key(), now - skew, now + lifetime)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)  # or strict clients refuse it, as those of Python 3.13
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    def issue(
        self, subject: CertificateSubject, now: datetime, lifetime: timedelta, *, skew: timedelta = CLOCK_SKEW
    ) -> KeyPair:
        """Issues a certificate with a new key, valid from `now - skew` and no longer than the authority's own."""
        key = _new_key()
        builder = self._leaf(_name(subject), key.public_key(), now - skew, now + lifetime)
        usages = [_USAGES[usage] for usage in subject.usages]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if subject.hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in subject.hosts])
            builder = builder.add_extension(names, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)

    def sign_request(self, request: bytes, now: datetime, lifetime: timedelta) -> bytes:
        """Signs a PEM certificate signing request of a client; returns the PEM certificate.

        Raises ValueError if `request` is not a request.
        """
        asked = x509.load_pem_x509_csr(request)
        builder = self._leaf(asked.subject, asked.public_key(), now - CLOCK_SKEW, now + lifetime)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        return encode_certificates([builder.sign(self._key, hashes.SHA256())])

    def _leaf(
        self, subject: x509.Name, key: CertificatePublicKeyTypes, begin: datetime, end: datetime
    ) -> x509.CertificateBuilder:
        end = min(end, self.certificate.not_valid_after_utc)
        builder = _builder(subject, self.certificate.subject, key, begin, end)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(identifier, critical=False)


_USAGES: Final = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}
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


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(subject: CertificateSubject) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in subject.organizations]
    if subject.common_name:
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name))
    return x509.Name(attributes)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: CertificatePublicKeyTypes, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(encode_certificates([certificate]), private)


def parse_certificates(text: bytes) -> Sequence[x509.Certificate]:
    """Returns the certificates of a PEM text; none if it cannot be parsed."""
    try:
        return x509.load_pem_x509_certificates(text)
    except (ValueError, UnsupportedAlgorithm):
        return ()


def encode_certificates(certificates: Sequence[x509.Certificate]) -> bytes:
    """Returns the certificates as one PEM text."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def parse_key(text: bytes) -> PrivateKeyTypes | None:
    """Returns the private key of a PEM text; None if it cannot be parsed or is encrypted."""
    try:
        return serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def is_key_of(key: PrivateKeyTypes, certificate: x509.Certificate) -> bool:
    """Reports whether this is the private key of the certificate."""
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return key.public_key().public_bytes(*form) == certificate.public_key().public_bytes(*form)


def hosts_of(certificate: x509.Certificate) -> Sequence[str]:
    """Returns the DNS names and then the IP addresses that the certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def renewal_time(certificate: x509.Certificate) -> datetime:
    """Returns the time from which the certificate is to be renewed: when a third of its lifetime is left."""
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - lifetime / 3


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Reports whether the certificate is due for renewal."""
    return now >= renewal_time(certificate)


def is_signed_by(chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate]) -> bool:
    """Reports whether the chain leads to one of these authorities."""
    current = chain[0]
    for _ in range(_LONGEST_CHAIN):
        if any(_has_signed(authority, current) for authority in authorities):
            return True
        above = next((each for each in chain[1:] if each != current and _has_signed(each, current)), None)
        if above is None:
            return False
        current = above
    return False


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
