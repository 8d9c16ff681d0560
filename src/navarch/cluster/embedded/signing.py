"""Certificates for requests of others, signed by the cluster's authority."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from navarch._base.clock import Clock
from navarch.cluster.embedded.certificates import Pair

__all__ = ["signed_request"]

_EARLIER: Final = timedelta(minutes=5)
_LONGEST: Final = timedelta(days=365)
_SHORTEST: Final = timedelta(minutes=10)


def signed_request(authority: Pair, clock: Clock, request: bytes, seconds: int | None) -> bytes:
    """The certificate of a client in PEM, for a request in PEM: for a year, or for as long as is asked for, but not for less
    than ten minutes. Raises ValueError for what is no request.
    """
    asked = x509.load_pem_x509_csr(request)
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "an authority has no other"
    lasting = _LONGEST if seconds is None else max(_SHORTEST, min(_LONGEST, timedelta(seconds=seconds)))
    now = clock.now()
    builder = x509.CertificateBuilder().subject_name(asked.subject).issuer_name(issuer.subject)
    builder = builder.public_key(asked.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _EARLIER).not_valid_after(now + lasting)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    signed = builder.add_extension(known, critical=False).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)
