"""Certificates for tests of TLS."""

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
AGES = timedelta(days=36500)


class Signed(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key(self) -> bytes:
        return self.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    @property
    def encrypted_key(self) -> bytes:
        return self.private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )


def sign(
    name: str,
    by: Signed | None = None,
    *,
    host: str = "127.0.0.1",
    begin: datetime = BEGIN,
    lifetime: timedelta = AGES,
) -> Signed:
    """A certificate for an address or a host name; one without a signer is a CA."""
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    known_as = x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + lifetime)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([known_as]), critical=False)
    )
    return Signed(builder.sign(by.private if by else private, hashes.SHA256()), private)
