"""TLS contexts: the CA, the client certificate, and the certificate's validity.

The validity is read from the DER without a cryptography library: two dates are enough to explain a refused handshake.
"""

from __future__ import annotations

import os
import re
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from navarch._base.tls import pem_file
from navarch.client.config.credentials import reason
from navarch.errors import ConfigError

_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
_TIMES = {_UTC_TIME: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}


def diagnose_certificate(config: TlsSettings, now: datetime) -> str | None:
    """Returns the reason why the Config's client certificate is not valid at `now`: expired, or not valid yet; None if
    it is valid.

    Call it when a handshake fails or the server answers 401.
    """
    certificate = client_certificate(config)
    return None if certificate is None else diagnose(certificate, now)


def diagnose(client: ClientCertificate, now: datetime) -> str | None:
    """Does what `diagnose_certificate` does, for a given certificate."""
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
    """Returns the validity period of the first certificate; None if it cannot be read."""
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
    """Returns the elements in `der`, each as its tag and content."""
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


_CERTIFICATE = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----.+?-----END [A-Z0-9 ]+-----", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----")
_ENCRYPTED = re.compile(rb"BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED")


FilePath = str | os.PathLike[str]


class TlsSettings(Protocol):
    """The fields of a `Config` that TLS needs."""

    @property
    def server(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def ca_file(self) -> FilePath: ...
    @property
    def ca_data(self) -> bytes: ...
    @property
    def client_certificate_file(self) -> FilePath: ...
    @property
    def client_certificate_data(self) -> bytes: ...
    @property
    def client_key_file(self) -> FilePath: ...
    @property
    def client_key_data(self) -> bytes: ...
    @property
    def insecure_skip_verify(self) -> bool: ...


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate chain and its private key as PEM; `*_name` name their sources in errors."""

    certificate: bytes
    key: bytes
    certificate_name: str
    key_name: str

    def __repr__(self) -> str:
        return f"ClientCertificate({self.certificate_name}, {self.key_name})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("certificate_name", self.certificate_name), ("key_name", self.key_name)]


def client_certificate(config: TlsSettings) -> ClientCertificate | None:
    """Returns the Config's own client certificate, read from its files if it names files."""
    if not config.client_certificate_file and not config.client_certificate_data:
        return None
    certificate_name = _name("client_certificate", config.client_certificate_file, config)
    key_name = _name("client_key", config.client_key_file, config)
    return ClientCertificate(
        certificate=_pem(config.client_certificate_data, config.client_certificate_file, certificate_name),
        key=_pem(config.client_key_data, config.client_key_file, key_name),
        certificate_name=certificate_name,
        key_name=key_name,
    )


def ca_certificates(config: TlsSettings) -> bytes:
    """Returns the CA as PEM; empty if the system's certificates apply."""
    if not config.ca_file and not config.ca_data:
        return b""
    return _pem(config.ca_data, config.ca_file, _name("ca", config.ca_file, config))


def ssl_context(config: TlsSettings, certificate: ClientCertificate | None) -> ssl.SSLContext | None:
    """Returns a context for this server and client; None for a server without TLS."""
    if not config.server.startswith("https:"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _trust(context, config)
    if certificate is not None:
        _present(context, certificate)
    return context


def _trust(context: ssl.SSLContext, config: TlsSettings) -> None:
    if config.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return
    ca = ca_certificates(config)
    if not ca:
        context.load_default_certs()
        return
    # As in Go: whatever the CA bundle holds is trusted, be it a root, an intermediate or the server's own.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    name = _name("ca", config.ca_file, config)
    blocks = _CERTIFICATE.findall(ca)
    if not blocks:
        raise ConfigError(f"{name}: expected a CA certificate in PEM form, got {_looks_like(ca)}")
    try:
        context.load_verify_locations(cadata=b"\n".join(blocks).decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"{name}: expected a CA certificate in PEM form, got a malformed one") from None


def _present(context: ssl.SSLContext, client: ClientCertificate) -> None:
    if not _CERTIFICATE.search(client.certificate):
        got = _looks_like(client.certificate)
        raise ConfigError(f"{client.certificate_name}: expected a client certificate in PEM form, got {got}")
    if _ENCRYPTED.search(client.key):
        raise ConfigError(
            f"{client.key_name}: expected a private key without a passphrase, got an encrypted one. "
            f"Decrypt it with `openssl pkey -in KEY -out NEWKEY`."
        )
    if not _KEY.search(client.key):
        got = _looks_like(client.key)
        raise ConfigError(f"{client.key_name}: expected a private key in PEM form, got {got}")
    with pem_file(client.certificate) as certificate, pem_file(client.key) as key:
        try:
            # A password, even an empty one, keeps OpenSSL from asking for one on the terminal.
            context.load_cert_chain(certificate, key, password="")
        except (ssl.SSLError, ValueError, OSError) as error:
            raise ConfigError(_chain_problem(error, client)) from None


def _chain_problem(error: Exception, client: ClientCertificate) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return (
            f"{client.key_name}: expected the private key of {client.certificate_name}, got the key of another "
            f"certificate. Take both from the same place."
        )
    why = f" ({error.reason})" if isinstance(error, ssl.SSLError) and error.reason else ""
    return (
        f"{client.certificate_name} and {client.key_name}: expected a certificate and its key in PEM form, "
        f"got a malformed one{why}"
    )


def _pem(data: bytes, path: FilePath, name: str) -> bytes:
    if data:
        return data
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}: expected a PEM file, got {reason(error)}") from None


def _name(field: str, path: FilePath, config: TlsSettings) -> str:
    return f"{config.origin}: {field}_file {os.fspath(path)}" if path else f"{config.origin}: {field}_data"


def _looks_like(data: bytes) -> str:
    if _KEY.search(data):
        return "a private key"
    if _CERTIFICATE.search(data):
        return "a certificate"
    if data[:2] == b"\x30\x82":
        return "what looks like DER (convert it: openssl x509 -inform der -in FILE)"
    return "something else" if data.strip() else "nothing"
