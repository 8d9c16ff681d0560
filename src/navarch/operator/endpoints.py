"""Where an operator is asked whether it is well, and what it has counted."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navarch._base.clock import Clock
from navarch.client import Client
from navarch.errors import ConfigError
from navarch.observe.logs import logger
from navarch.observe.metrics import Metrics
from navarch.operator.certificate import ServingCertificate

if TYPE_CHECKING:
    from aiohttp import web
    from prometheus_client import CollectorRegistry

    from navarch.operator.scrapers import Scrapers

__all__ = ["Address", "Check", "EndpointServer", "Endpoints", "Listening"]

Check = Callable[[], str | None]
"""Asked for each probe: None while all is well, else why not, in a few words."""

_log = logger("navarch.operator.endpoints")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]*):(?P<port>\d{1,5})")


class Address(NamedTuple):
    """A host and a port to listen at; no host means every address of the machine, port 0 any free one."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> Address:
        """From "127.0.0.1:8080", "[::1]:8080", "localhost:8080" or ":8080"; raises `ConfigError`."""
        found = _ADDRESS.fullmatch(text)
        if found is None or int(found["port"]) > 65535:
            raise ConfigError(f'expected an address to listen at such as "127.0.0.1:8080" or ":8080", got {text!r}')
        return Address(found["host"].strip("[]"), int(found["port"]))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where to listen; None leaves an endpoint out.

    By default both listen on this machine only. A kubelet probes the pod's own address: use `health=":8081"` in a pod.
    Metrics may leave the machine only with `token_review`: each scrape then needs a token whose owner may `get` the
    non-resource URL `/metrics`. `certificate` and `key`, files in PEM, make the metrics HTTPS; they are read again when
    they change. `registry` has metrics of your own, which are shown beside the runtime's: prometheus_client's `REGISTRY`,
    or another one. Raises `ConfigError` for no address, and for options that contradict each other.
    """

    health: str | None = "127.0.0.1:8081"
    metrics: str | None = "127.0.0.1:8080"
    certificate: Path | None = None
    key: Path | None = None
    token_review: bool = False
    registry: CollectorRegistry | None = None

    def __post_init__(self) -> None:
        health, metrics = self.health_address, self.metrics_address
        if metrics and not metrics.is_loopback and not self.token_review:
            raise ConfigError(
                f"expected a loopback address for metrics that anybody may read, got {self.metrics!r}; set "
                f'token_review=True, or metrics="127.0.0.1:{metrics.port}"'
            )
        if health and health == metrics and health.port:
            raise ConfigError(f"expected two addresses for health and metrics, got {self.health!r} for both")
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("expected a certificate and its key, got only one of them; give both or neither")

    @property
    def health_address(self) -> Address | None:
        """Where health is asked for."""
        return None if self.health is None else Address.parse(self.health)

    @property
    def metrics_address(self) -> Address | None:
        """Where metrics are read."""
        return None if self.metrics is None else Address.parse(self.metrics)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server really listens, which matters when it was given port 0."""

    health: Address | None
    metrics: Address | None


class EndpointServer:
    """Serves `/healthz`, `/readyz` and `/metrics`.

    `alive` and `ready` are looked into for each probe, so checks may come and go. `client` reviews tokens; it must be
    allowed to write even where this process does not lead.
    """

    def __init__(
        self,
        options: Endpoints,
        *,
        alive: Mapping[str, Check],
        ready: Mapping[str, Check],
        metrics: Metrics,
        client: Client,
        clock: Clock,
    ) -> None:
        self._options = options
        self._alive = alive
        self._ready = ready
        self._metrics = metrics
        self._scrapers = _scrapers(client, clock) if options.token_review else None
        self._certificate = _certificate(options, clock)
        self._bound = asyncio.Event()
        self._listening = Listening(None, None)

    async def run(self) -> None:
        """Serves until cancelled. Raises `ConfigError` if an address is taken or a certificate cannot be used."""
        from navarch.operator import serving  # noqa: PLC0415 - aiohttp's server, for those who have endpoints only

        options = self._options
        async with AsyncExitStack() as stack:
            health, metrics = options.health_address, options.metrics_address
            if health is not None:
                app = serving.health_app(self._alive, self._ready)
                health = await self._listen(stack, "health", app, health, None)
            if metrics is not None:
                app = serving.metrics_app(self._metrics, self._scrapers)
                metrics = await self._listen(stack, "metrics", app, metrics, self._certificate)
            self._listening = Listening(health, metrics)
            self._bound.set()
            await (self._certificate.run() if self._certificate else asyncio.Event().wait())

    async def listening(self) -> Listening:
        """Returns once `run` listens."""
        await self._bound.wait()
        return self._listening

    async def _listen(
        self,
        stack: AsyncExitStack,
        purpose: str,
        app: web.Application,
        address: Address,
        certificate: ServingCertificate | None,
    ) -> Address:
        from navarch.operator import serving  # noqa: PLC0415 - as above

        context = certificate.context() if certificate else None
        try:
            port = await stack.enter_async_context(serving.listening(app, address.host, address.port, context))
        except OSError as error:
            raise ConfigError(
                f"expected to listen at {address} for {purpose}, got: {error.strerror or error}; stop whoever has "
                f"that address, or choose another with Endpoints({purpose}=…)"
            ) from error
        bound = address._replace(port=port)
        _log.info("listening", purpose=purpose, address=str(bound), tls=context is not None)
        if purpose == "metrics" and context is None and not address.is_loopback:
            _log.warning("tokens of scrapers cross the network unencrypted; give Endpoints a certificate and its key")
        return bound


def _scrapers(client: Client, clock: Clock) -> Scrapers:
    from navarch.operator.scrapers import Scrapers  # noqa: PLC0415 - kinds that are needed for this only

    return Scrapers(client, clock)


def _certificate(options: Endpoints, clock: Clock) -> ServingCertificate | None:
    if options.certificate is None or options.key is None:
        return None
    return ServingCertificate(options.certificate, options.key, clock)
