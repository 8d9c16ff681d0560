"""Certificates for tests of TLS."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from navarch.certificates import CertificateAuthority, CertificateSubject, KeyPair, parse_certificates, parse_key

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
AGES = timedelta(days=36500)


class Signed(NamedTuple):
    """A certificate and its key."""

    pair: KeyPair

    @property
    def certificate(self) -> x509.Certificate:
        return parse_certificates(self.pem)[0]

    @property
    def pem(self) -> bytes:
        return self.pair.certificate

    @property
    def key(self) -> bytes:
        return self.pair.key

    @property
    def encrypted_key(self) -> bytes:
        key = parse_key(self.key)
        assert key is not None
        return key.private_bytes(
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
    """Returns a certificate of a server and client at an address or host name; without a signer, a CA."""
    if by is None:
        return Signed(CertificateAuthority.create(name, begin, lifetime, skew=timedelta()).pair)
    subject = CertificateSubject(common_name=name, hosts=(host,), usages=("server", "client"))
    return Signed(CertificateAuthority(by.pair).issue(subject, begin, lifetime, skew=timedelta()))
