"""Certificates for tests of TLS."""

import ssl
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from navarch._base.tls import pem_file
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


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """Returns a context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pem_file(pair.certificate + pair.key) as file:
        context.load_cert_chain(file)
    return context


def handshake(server: ssl.SSLContext, trusted: bytes, host: str, *, at: datetime | None = None) -> x509.Certificate:
    """Shakes hands in memory, with a strict client; returns the server's certificate.

    Raises `ssl.SSLError` if the client refuses the server. With `at` validity is not checked against the machine's time, but
    against that one.
    """
    client = ssl.create_default_context(cadata=trusted.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    if at is not None:
        client.verify_flags |= _NO_CHECK_TIME
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    wrapped = client.wrap_bio(to_client, to_server, server_hostname=host)
    ends = [wrapped, server.wrap_bio(to_server, to_client, server_side=True)]
    while ends:
        for end in tuple(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    der = wrapped.getpeercert(binary_form=True)
    assert der is not None
    shown = x509.load_der_x509_certificate(der)
    assert at is None or shown.not_valid_before_utc <= at < shown.not_valid_after_utc, "expected a valid certificate"
    return shown


_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python does not name."""
