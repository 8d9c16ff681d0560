"""Go's messages for failed connections."""

from __future__ import annotations

import errno
import ssl
from typing import Final

_BAD_NAME: Final = frozenset({62, 64})
_BAD_TIME: Final = frozenset({9, 10})
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
_ERRNO: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset by peer",
    errno.ENETUNREACH: "network is unreachable",
    errno.EHOSTUNREACH: "no route to host",
    errno.ETIMEDOUT: "i/o timeout",
}


def connection_fault(error: Exception, host: str) -> str:
    """Why there was no answer. `host` is the name that was wanted of the certificate; empty if it is that of the URL."""
    from aiohttp import (  # noqa: PLC0415 - whoever has no such connections does not pay for it
        ClientConnectorDNSError,
        ClientConnectorError,
        ClientResponseError,
        ServerDisconnectedError,
    )

    certificate = getattr(error, "certificate_error", None)
    if isinstance(certificate, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_certificate_fault(certificate, error, host)}"
    if isinstance(error, ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, ClientConnectorError):
        return _dial_fault(error.host, error.port, error.os_error)
    if isinstance(error, ServerDisconnectedError):
        return "EOF"
    if isinstance(error, ClientResponseError):
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    if isinstance(error, OSError) and error.errno in _ERRNO:
        return _ERRNO[error.errno]
    return str(error) or type(error).__name__


def _certificate_fault(certificate: ssl.SSLCertVerificationError, error: Exception, host: str) -> str:
    if certificate.verify_code in _BAD_NAME:
        return f"certificate is not valid for {host or getattr(error, 'host', '')}"
    if certificate.verify_code in _BAD_TIME:
        return "certificate has expired or is not yet valid"
    return "certificate signed by unknown authority"


def _dial_fault(host: str, port: int | None, error: OSError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return "tls: first record does not look like a TLS handshake"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or error}"
    reason = _ERRNO.get(error.errno or 0) or error.strerror or str(error)
    return f"dial tcp {host}:{port}: connect: {reason}"
