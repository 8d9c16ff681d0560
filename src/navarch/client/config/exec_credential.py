"""A credential from an exec plugin, cached until it expires."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from navarch._base.clock import Clock
from navarch.client.config.credentials import bearer
from navarch.client.config.exec_plugin import PluginCredential, run_plugin
from navarch.client.config.model import Config, ExecPlugin
from navarch.client.config.tls import ClientCertificate
from navarch.errors import CredentialError

_log = logging.getLogger("navarch.client.config")

# A request must not set out with a credential that expires on the way.
_MARGIN = timedelta(seconds=30)
# A server that refuses whatever the plugin gives would otherwise have it run once for each request.
_PAUSE_SECONDS = 5.0


class ExecCredential:
    """Runs the plugin when there is no credential, when it is about to expire, and after the server refused it.

    Concurrent callers share one run of the plugin, and its failure.
    """

    def __init__(self, plugin: ExecPlugin, config: Config, clock: Clock) -> None:
        self._plugin = plugin
        self._config = config
        self._clock = clock
        self._flight = _SingleFlight()
        self._answer: PluginCredential | None = None
        self._headers: Mapping[str, str] = MappingProxyType({})
        self._renew_at: datetime | None = None
        self._refused_at = float("-inf")
        self.certificate_version = 0
        """Rises with each new client certificate."""

    @property
    def certificate(self) -> ClientCertificate | None:
        """The client certificate of the plugin's last run; None if it returned none."""
        return self._answer.certificate if self._answer else None

    async def headers(self) -> Mapping[str, str]:
        if not self._is_good():
            await self._flight.run(self._fetch, unless=self._is_good)
        return self._headers

    async def refresh(self) -> bool:
        before = self._answer
        if self._clock.monotonic() - self._refused_at < _PAUSE_SECONDS:
            return False
        await self._flight.run(self._fetch, unless=lambda: self._answer is not before)
        changed = not _same(before, self._answer)
        self._refused_at = float("-inf") if changed else self._clock.monotonic()
        return changed

    def _is_good(self) -> bool:
        return self._answer is not None and (self._renew_at is None or self._clock.now() < self._renew_at)

    async def _fetch(self) -> None:
        found = await run_plugin(self._plugin, self._config, self._clock)
        where = f"{self._config.origin}: exec plugin {self._plugin.command!r}"
        headers = bearer(found.token, where) if found.token else MappingProxyType({})
        if _pem_of(found) != _pem_of(self._answer):
            self.certificate_version += 1
        self._answer = found
        self._headers = self._headers if headers == self._headers else headers
        self._renew_at = self._renewal(found, where)

    def _renewal(self, found: PluginCredential, where: str) -> datetime | None:
        if found.expires is None:
            return None
        left = found.expires - self._clock.now()
        if left <= timedelta():
            _log.warning("%s: the credential it gave has expired at %s already", where, found.expires.isoformat())
        return found.expires - min(_MARGIN, max(left, timedelta()) / 10)


def _pem_of(found: PluginCredential | None) -> tuple[bytes, bytes] | None:
    certificate = found.certificate if found else None
    return (certificate.certificate, certificate.key) if certificate else None


def _same(one: PluginCredential | None, other: PluginCredential | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.token == other.token and _pem_of(one) == _pem_of(other)


class _SingleFlight:
    """Runs the work for one caller while the others wait for its outcome.

    A cancelled caller is no failure: the next one in line repeats the work.
    """

    def __init__(self) -> None:
        self._lock: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failures = 0
        self._failure: CredentialError | None = None

    async def run(self, work: Callable[[], Awaitable[None]], *, unless: Callable[[], bool]) -> None:
        failures = self._failures
        async with self._turn():
            if unless():
                return
            if self._failure is not None and self._failures != failures:
                raise CredentialError(str(self._failure)) from None
            try:
                await work()
            except CredentialError as error:
                self._failures += 1
                self._failure = error
                raise

    def _turn(self) -> asyncio.Lock:
        """Returns a lock of the running loop: a Config may serve one event loop after another."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._loop is not loop:
            self._lock, self._loop = asyncio.Lock(), loop
        return self._lock
