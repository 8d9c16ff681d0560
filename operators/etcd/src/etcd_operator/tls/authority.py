"""Certificate authorities, their certificates, and their rotation.

etcd reads its trusted authorities only when it starts. So the operator first publishes a new authority, lets it sign only
after every member was started with it, and trusts the old one until it expires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from etcd_operator.tls.checks import certificates, is_due

_VALID: Final = timedelta(days=3650)


@dataclass(frozen=True, slots=True, repr=False)
class AuthorityRotation:
    """The signing authority, the next one, and the former ones that are still trusted (PEM)."""

    side: str
    signer: TlsAuthority | None = None
    heir: TlsAuthority | None = None
    past: bytes = b""

    @classmethod
    def of(cls, side: str, data: Mapping[str, bytes], trusted: bytes) -> AuthorityRotation:
        """Reads the rotation from a Secret; if that was lost, the trusted authorities of the members remain."""
        signer, heir = _authority(data, f"{side}-ca"), _authority(data, f"{side}-next-ca")
        past = data.get(f"{side}-past-ca.crt", b"") if signer is not None else trusted
        return cls(side, signer, heir, past)

    @property
    def data(self) -> dict[str, bytes]:
        """Returns the data of its Secret."""
        pairs = ((f"{self.side}-ca", self.signer), (f"{self.side}-next-ca", self.heir))
        known = {name: authority.pair for name, authority in pairs if authority is not None}
        found = {f"{name}.crt": pair.certificate for name, pair in known.items()}
        found |= {f"{name}.key": pair.key for name, pair in known.items()}
        return found | ({f"{self.side}-past-ca.crt": self.past} if self.past else {})

    @property
    def trusted(self) -> bytes:
        """Returns all trusted certificates, in an order that does not depend on the signer."""
        pairs = [authority.pair.certificate for authority in (self.signer, self.heir) if authority is not None]
        every = {_text(each) for each in certificates(b"".join((*pairs, self.past)))} if pairs or self.past else set()
        return b"".join(sorted(every))

    def advanced(self, name: str, now: datetime, *, known: bool) -> AuthorityRotation:
        """Returns the rotation one step further, if due; `known` means that every member trusts the current authorities."""
        past = b"".join(_text(each) for each in certificates(self.past) if each.not_valid_after_utc > now)
        if self.signer is None and self.heir is None:
            made = _made(name, now)
            return (
                AuthorityRotation(self.side, heir=made, past=past)
                if past
                else AuthorityRotation(self.side, signer=made)
            )
        if self.heir is not None and known:
            old = self.signer.pair.certificate if self.signer is not None else b""
            return AuthorityRotation(self.side, signer=self.heir, past=past + old)
        due = self.signer is not None and is_due(self.signer.certificate, now)
        heir = _made(name, now) if due and self.heir is None else self.heir
        return AuthorityRotation(self.side, self.signer, heir, past)


def _made(name: str, now: datetime) -> TlsAuthority:
    return TlsAuthority.make(name, now, _VALID)


def _authority(data: Mapping[str, bytes], name: str) -> TlsAuthority | None:
    try:
        return TlsAuthority(TlsKeyPair(data[f"{name}.crt"], data[f"{name}.key"]))
    except (KeyError, ValueError, TypeError):
        return None


def _text(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


_EARLIER: Final = timedelta(minutes=5)
"""Certificates are valid from a little earlier, because clocks differ."""
_USAGES: Final = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, slots=True, repr=False)
class TlsKeyPair:
    """A certificate and its private key, in PEM form."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class TlsSubject:
    """The subject of a certificate. A client certificate has no hosts."""

    name: str
    hosts: tuple[str, ...] = ()

    @property
    def usages(self) -> tuple[str, ...]:
        """The key usages. Members are clients too: of each other, and the gateway of its own member."""
        return ("server", "client") if self.hosts else ("client",)


class TlsAuthority:
    """Signs certificates. Raises ValueError if the key is not an elliptic-curve key."""

    def __init__(self, pair: TlsKeyPair) -> None:
        key = serialization.load_pem_private_key(pair.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("expected a private key on an elliptic curve")  # noqa: TRY004 - one error for every unusable pair
        self.pair = pair
        self.certificate = x509.load_pem_x509_certificate(pair.certificate)
        self._key = key

    @classmethod
    def make(cls, name: str, now: datetime, valid: timedelta) -> Self:
        """Creates a new authority."""
        key = _new_key()
        title = _title(name)
        builder = _builder(title, title, key.public_key(), now, now + valid)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    def issue(self, subject: TlsSubject, now: datetime, valid: timedelta) -> TlsKeyPair:
        """Issues a certificate that expires no later than the authority."""
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


def _title_of(subject: TlsSubject) -> x509.Name:
    """Returns the subject name. A client gets no common name: etcd would take it for a user, and its gateway refuses that."""
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


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> TlsKeyPair:
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return TlsKeyPair(certificate.public_bytes(encoding), private)
