"""The cluster's own certificate authority; everything it signs lives as long as a test run."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = dt.timedelta(days=30)
_CLOCK_SKEW = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that keeps what it issues in one folder, keys readable by the owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "navarch-rig-ca")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = self._builder(self._name, self._key.public_key()).add_extension(constraints, critical=True)
        self.pair = self._write("ca", builder, self._key)

    def serving(self, name: str, hosts: Sequence[str]) -> Pair:
        """Issue a server's certificate for host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_subject(name, ()), key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        return self._write(name, _for(builder, ExtendedKeyUsageOID.SERVER_AUTH), key)

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> Pair:
        """Issue a certificate that authenticates as a user in groups."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_subject(user, groups), key.public_key())
        return self._write(name, _for(builder, ExtendedKeyUsageOID.CLIENT_AUTH), key)

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(public_key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - _CLOCK_SKEW).not_valid_after(now + LIFETIME)

    def _write(self, name: str, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        pair.certificate.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        write_key(pair.key, key)
        return pair


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | None = None) -> Path:
    """Write a private key (a new one unless given), readable by the owner only."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return path


def _subject(user: str, groups: Sequence[str]) -> x509.Name:
    """Kubernetes reads the user from the common name and the groups from the organizations."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _for(builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier) -> x509.CertificateBuilder:
    return builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
