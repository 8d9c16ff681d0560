"""From when until when a certificate is good, read from its DER without a cryptography library.

The core does without one, and two dates are all that is needed to explain a refused handshake.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

from navarch.client.config.model import Config
from navarch.client.config.tls import ClientCertificate, client_certificate

_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
_TIMES = {_UTC_TIME: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}


def diagnose_certificate(config: Config, now: datetime) -> str | None:
    """Why the Config's client certificate is no good at `now`: expired, or not valid yet; None if it is not to blame.

    For use when a handshake fails or the server answers 401.
    """
    certificate = client_certificate(config)
    return None if certificate is None else diagnose(certificate, now)


def diagnose(client: ClientCertificate, now: datetime) -> str | None:
    """The same for a certificate at hand."""
    period = validity(client.certificate)
    if period is None:
        return None
    begin, end = period
    if now > end:
        return f"{client.certificate_name}: the client certificate expired at {end:%Y-%m-%d %H:%M:%S} UTC. Renew it."
    if now < begin:
        return (
            f"{client.certificate_name}: the client certificate is not valid before {begin:%Y-%m-%d %H:%M:%S} UTC. "
            f"Is this machine's clock right? It says {now:%Y-%m-%d %H:%M:%S}."
        )
    return None


def validity(pem: bytes) -> tuple[datetime, datetime] | None:
    """When the first certificate begins and ends to be valid; None if it cannot be read."""
    try:
        text = pem.decode("latin-1")
        start = text.index(ssl.PEM_HEADER)
        end = text.index(ssl.PEM_FOOTER, start) + len(ssl.PEM_FOOTER)
        return _period(ssl.PEM_cert_to_DER_cert(text[start:end]))
    except (ValueError, IndexError, KeyError):
        return None


def _period(der: bytes) -> tuple[datetime, datetime]:
    fields = _children(_children(_children(der)[0][1])[0][1])  # Certificate > TBSCertificate > its fields
    if fields[0][0] == _VERSION:
        fields = fields[1:]
    tag, times = fields[3]  # serial number, signature algorithm, issuer, validity
    if tag != _SEQUENCE:
        raise ValueError("no validity where it should be")
    begin, end = (_time(tag, value) for tag, value in _children(times))
    return begin, end


def _time(tag: int, value: bytes) -> datetime:
    moment = datetime.strptime(value.decode("ascii"), _TIMES[tag]).replace(tzinfo=UTC)
    short_and_old = tag == _UTC_TIME and moment.year >= 2050  # X.509 reads the year 50 as 1950, strptime as 2050
    return moment.replace(year=moment.year - 100) if short_and_old else moment


def _children(der: bytes) -> list[tuple[int, bytes]]:
    """The elements in `der` one after another, each as its tag and content."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size]), at + size
        if at + length > len(der):
            raise ValueError("an element that is longer than what holds it")
        found.append((tag, der[at : at + length]))
        at += length
    return found
