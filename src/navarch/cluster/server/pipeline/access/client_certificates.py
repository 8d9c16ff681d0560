"""Users from client certificates, which TLS has already verified."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from navarch._base.clock import Clock
from navarch.cluster.server.pipeline.access.users import CREDENTIAL_ID
from navarch.cluster.server.wire.request import User

__all__ = ["ClientCertificates", "InvalidCertificateError"]

_USER_UID: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_MOST_REMEMBERED: Final = 1024


class InvalidCertificateError(Exception):
    """A certificate that cannot be read, or is not valid now, or says more than one uid."""


class ClientCertificates:
    """The user of a certificate: its common name, with its organizations as groups."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: dict[bytes, tuple[User | None, datetime, datetime]] = {}

    def user(self, der: bytes) -> User | None:
        """None if the certificate names nobody; raises `InvalidCertificateError`."""
        if der not in self._read:
            if len(self._read) >= _MOST_REMEMBERED:
                self._read.clear()
            self._read[der] = _read(der)
        user, begin, end = self._read[der]
        if not begin <= self._clock.now() <= end:
            raise InvalidCertificateError("x509: certificate has expired or is not yet valid")
        return user


def _read(der: bytes) -> tuple[User | None, datetime, datetime]:
    try:
        certificate = x509.load_der_x509_certificate(der)
        user = _user(certificate.subject, hashlib.sha256(der).hexdigest())
    except ValueError as error:
        raise InvalidCertificateError("x509: the certificate cannot be read") from error
    return user, certificate.not_valid_before_utc, certificate.not_valid_after_utc


def _user(subject: x509.Name, fingerprint: str) -> User | None:
    """Go takes the last common name; of uids there may be one."""
    names, groups, uids = (
        tuple(str(each.value) for each in subject.get_attributes_for_oid(oid))
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, _USER_UID)
    )
    if len(uids) > 1:
        raise ValueError("expected one uid")
    if not names or not names[-1]:
        return None
    return User(names[-1], "".join(uids), groups, {CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)})
