"""The certificates of one cluster: its authority, its server's, and its administrator's."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from navarch._base.clock import Clock
from navarch.cluster.server.wire.request import User
from navarch.errors import ConfigError

__all__ = ["Authority", "Pair", "server_context"]

_VALID: Final = timedelta(days=3650)
_EARLIER: Final = timedelta(minutes=5)
_SERVICE: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_HOSTS: Final = ("localhost", *_SERVICE)
_ADDRESSES: Final = ("127.0.0.1", "::1", "10.0.0.1")


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


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "<Pair: a certificate and its private key>"


class Authority:
    """Signs the certificates of one cluster. Raises `ConfigError` if it is given something else."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        try:
            key = serialization.load_pem_private_key(pair.key, password=None)
            self._name = x509.load_pem_x509_certificate(pair.certificate).subject
        except (ValueError, TypeError) as error:
            raise ConfigError("expected the certificate and the private key of an authority, as PEM") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigError(f"expected a private key on an elliptic curve, got {type(key).__name__}")
        self._key = key

    @classmethod
    def make(cls, clock: Clock) -> Self:
        """A new one."""
        key, name = _new_key(), _name("navarch-ca")
        builder = _builder(clock, name, name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)  # or strict clients refuse it, as those of Python 3.13
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    def server_pair(self, clock: Clock, service: str = "") -> Pair:
        """For a server on this machine's loopback addresses, and at the address of its service, if that is another."""
        names = [x509.DNSName(host) for host in _HOSTS]
        known = [*_ADDRESSES, service] if service and service not in _ADDRESSES else _ADDRESSES
        addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in known]
        extension = x509.SubjectAlternativeName([*names, *addresses])
        return self._issued(clock, _name("kube-apiserver"), [ExtendedKeyUsageOID.SERVER_AUTH], extension)

    def peer_pair(self, clock: Clock, name: str) -> Pair:
        """For both ends of connections within this machine."""
        extension = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(_ADDRESSES[0]))])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issued(clock, _name(name), usages, extension)

    def client_pair(self, clock: Clock, user: User) -> Pair:
        """Proves this user."""
        return self._issued(clock, _name(user.name, *user.groups), [ExtendedKeyUsageOID.CLIENT_AUTH], None)

    def _issued(
        self,
        clock: Clock,
        name: x509.Name,
        usages: list[x509.ObjectIdentifier],
        extension: x509.SubjectAlternativeName | None,
    ) -> Pair:
        key = _new_key()
        builder = _builder(clock, name, self._name, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def server_context(authority: Authority, pair: Pair) -> ssl.SSLContext:
    """TLS for a server that takes, but does not demand, certificates of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory(prefix="navarch-") as folder:  # readable by this user alone
        chain = Path(folder, "chain.pem")
        chain.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(chain)
    return context


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str, *organizations: str) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    clock: Clock, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = clock.now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _VALID)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(encoding), private)
