"""Certificates of a server: `ServingCertificate` from files that others renew, `SelfSignedCertificate` from memory."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path
from typing import Final

from navarch._base.clock import Clock
from navarch._base.tls import load_key_pair, pem_file
from navarch.errors import ConfigError
from navarch.observe.logs import logger

__all__ = ["SelfSignedCertificate", "ServingCertificate"]

_LOOK_SECONDS = 10.0
_LIFETIME: Final = timedelta(days=90)
_RENEWAL_SECONDS: Final = _LIFETIME.total_seconds() / 3

_log = logger("navarch.operator.endpoints")

Stamp = tuple[tuple[int, int, int], ...]


class ServingCertificate:
    """A certificate and its key, in PEM files. New connections get the pair that was last read."""

    def __init__(self, certificate: Path, key: Path, clock: Clock) -> None:
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._read: Stamp = ()

    def context(self) -> ssl.SSLContext:
        """Returns the TLS context, loaded from the files. Raises `ConfigError` if they cannot be used."""
        self._load()
        return self._context

    async def run(self) -> None:
        """Checks every ten seconds whether the files have changed, until cancelled.

        A pair that cannot be used is logged and tried again at the next change; the last good one stays.
        """
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            self._load_if_changed()

    def _load_if_changed(self) -> None:
        try:
            if self._stamp() == self._read:
                return
            self._load()
        except ConfigError as error:
            _log.warning("the new certificate cannot be used; the last good one is served", error=error)
        else:
            _log.info("serving a new certificate", certificate=str(self._certificate))

    def _load(self) -> None:
        self._read = self._stamp()
        try:
            load_key_pair(self._context, self._certificate, self._key)
        except OSError as error:
            raise self._unusable(error) from error

    def _stamp(self) -> Stamp:
        """Returns a value that changes with the files, also if a link points elsewhere, as in a mounted Secret."""
        try:
            found = (path.stat() for path in (self._certificate, self._key))
            return tuple((status.st_mtime_ns, status.st_ino, status.st_size) for status in found)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"expected a certificate in {self._certificate} and its key in {self._key}, both PEM, got: {error}; "
            "check Endpoints(certificate=…, key=…)"
        )


class SelfSignedCertificate:
    """A certificate that the server issues for itself: the connection is encrypted, but clients cannot check the server.

    The key stays in memory. Clients that must check the server need a certificate from files.
    """

    def __init__(self, hosts: tuple[str, ...], clock: Clock) -> None:
        self._hosts = hosts
        self._clock = clock
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    def context(self) -> ssl.SSLContext:
        """Returns the TLS context with a new certificate. Raises `ConfigError` if cryptography is not installed."""
        self._issue()
        return self._context

    async def run(self) -> None:
        """Replaces the certificate when a third of its lifetime is over, until cancelled."""
        while True:
            await self._clock.sleep(_RENEWAL_SECONDS)
            self._issue()

    def _issue(self) -> None:
        try:
            from navarch.certificates import CertificateAuthority, CertificateSubject  # noqa: PLC0415 - an extra
        except ImportError:
            raise ConfigError(
                "expected the package cryptography, with which an operator issues the certificate of its metrics; pip install "
                "'navarch[webhook]', or give the files of a certificate (--metrics-cert-path)"
            ) from None
        now = self._clock.now()
        authority = CertificateAuthority.create("navarch metrics", now, _LIFETIME)
        pair = authority.issue(CertificateSubject(common_name="metrics", hosts=self._hosts), now, _LIFETIME)
        with pem_file(pair.certificate) as certificate, pem_file(pair.key) as key:
            load_key_pair(self._context, certificate, key)
