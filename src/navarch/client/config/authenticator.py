"""The credential and TLS context of one server, over time."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from navarch._base.clock import Clock
from navarch.client.config.credentials import Credential, StaticCredential, TokenFile, basic, bearer, stamp
from navarch.client.config.model import Config
from navarch.client.config.tls import ClientCertificate, client_certificate, diagnose, ssl_context

if TYPE_CHECKING:
    from navarch.client.config.exec_credential import ExecCredential

# Certificates on disk are replaced hours before they expire.
_GLANCE_SECONDS = 60.0


class Authenticator:
    """Supplies headers and TLS contexts, and notices when they change.

    For each request call `headers`, then `version` and `tls_version` without awaiting in between. Connections of an
    older `tls_version` use an older certificate. After a 401 call `refresh(version)`, and try once more if it returns
    True.
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._plugin = _plugin(config, clock)
        self._credential = self._plugin or _credential(config, clock)
        self._headers: Mapping[str, str] | None = None
        self._header_version = 0
        self._files = tuple(
            Path(path) for path in (config.ca_file, config.client_certificate_file, config.client_key_file) if path
        )
        self._stamps = tuple(map(stamp, self._files))
        self._glanced_at = clock.monotonic()
        self._file_version = 0

    @property
    def version(self) -> int:
        """Rises with each new token or certificate."""
        return self._header_version + self.tls_version

    @property
    def tls_version(self) -> int:
        """Rises when `ssl_context` would return another context: new files, or a new certificate from a plugin."""
        return self._file_version + (self._plugin.certificate_version if self._plugin else 0)

    async def headers(self) -> Mapping[str, str]:
        """Returns the authentication headers, without those of impersonation. Raises CredentialError if there
        are none.
        """
        self._glance_at_files()
        headers = await self._credential.headers()
        if headers is not self._headers and headers != self._headers:
            self._header_version += 1
        self._headers = headers
        return headers

    async def refresh(self, refused: int) -> bool:
        """Call it after the server answered 401 to `version`. Returns True if another credential can be tried."""
        if self.version != refused:
            return True
        changed = await self._credential.refresh()
        if changed:
            await self.headers()  # so that all who were refused with the old version see the new one
        return changed

    def ssl_context(self) -> ssl.SSLContext | None:
        """Returns a context for the current `tls_version`; None for a server without TLS. Raises ConfigError."""
        return ssl_context(self._config, self._certificate())

    def diagnose(self) -> str | None:
        """Returns the reason why the client certificate caused a refused handshake or a 401; None if it did not."""
        certificate = self._certificate()
        return None if certificate is None else diagnose(certificate, self._clock.now())

    def _certificate(self) -> ClientCertificate | None:
        return self._plugin.certificate if self._plugin else client_certificate(self._config)

    def _glance_at_files(self) -> None:
        now = self._clock.monotonic()
        if not self._files or now - self._glanced_at < _GLANCE_SECONDS:
            return
        self._glanced_at = now
        stamps = tuple(map(stamp, self._files))
        if all(stamps) and stamps != self._stamps:  # a file that is missing is about to be replaced
            self._stamps = stamps
            self._file_version += 1


def _plugin(config: Config, clock: Clock) -> ExecCredential | None:
    """Returns the exec plugin, if it applies: as in client-go, every static credential has precedence."""
    fixed_one = config.credential or config.token_file or config.token or config.username
    if config.exec_plugin is None or fixed_one or config.client_certificate_file or config.client_certificate_data:
        return None
    from navarch.client.config.exec_credential import ExecCredential  # noqa: PLC0415 - most have no plugin to pay for

    return ExecCredential(config.exec_plugin, config, clock)


def _credential(config: Config, clock: Clock) -> Credential:
    if config.credential is not None:
        return config.credential
    if config.token_file:
        return TokenFile(Path(config.token_file), clock, where=config.origin, fallback=config.token)
    return _static(config)


def _static(config: Config) -> StaticCredential:
    """Returns the headers of a Config with a static credential; none for a client certificate or no credential."""
    if config.token:
        return StaticCredential(bearer(config.token, config.origin))
    if config.username:
        return StaticCredential(basic(config.username, config.password))
    return StaticCredential({})
