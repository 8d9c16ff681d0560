"""`EndpointServer`: serves `/healthz`, `/readyz` and `/metrics`.

Only an operator with `Endpoints` imports this module: aiohttp's server takes memory.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from navarch._base.clock import Clock
from navarch.client import Client
from navarch.errors import ConfigError, NavarchError
from navarch.observe.logs import logger
from navarch.observe.metrics import Metrics
from navarch.operator.certificate import SelfSignedCertificate, ServingCertificate
from navarch.operator.endpoints import Address, Check, Endpoints
from navarch.operator.scrapers import Scrapers

Handler = Callable[[web.Request], Awaitable[web.Response]]

_SHUTDOWN_SECONDS = 1.0

_log = logger("navarch.operator.endpoints")


@dataclass(frozen=True, slots=True)
class Listening:
    """The addresses of a server, with the ports it got for port 0."""

    health: Address | None
    metrics: Address | None


_FLAGS = {"health": "--health-probe-bind-address", "metrics": "--metrics-bind-address"}


class EndpointServer:
    """Serves `/healthz`, `/readyz` and `/metrics`.

    Each probe reads `alive` and `ready` anew, so checks may be added and removed. `client` reviews tokens; it must be allowed to
    write even where this process does not lead.
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
        self._scrapers = Scrapers(client, clock) if options.token_review else None
        self._certificate = _certificate(options, clock)
        self._bound = asyncio.Event()
        self._listening = Listening(None, None)

    async def run(self) -> None:
        """Serves until cancelled. Raises `ConfigError` if an address is taken or a certificate cannot be used."""
        options = self._options
        async with AsyncExitStack() as stack:
            health, metrics = options.health_address, options.metrics_address
            if health is not None:
                app = health_app(self._alive, self._ready)
                health = await self._listen(stack, "health", app, health, None)
            if metrics is not None:
                app = metrics_app(self._metrics, self._scrapers)
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
        certificate: ServingCertificate | SelfSignedCertificate | None,
    ) -> Address:
        context = certificate.context() if certificate else None
        try:
            port = await stack.enter_async_context(_listening(app, address.host, address.port, context))
        except OSError as error:
            raise ConfigError(
                f"expected to listen at {address} for {purpose}, got: {error.strerror or error}; stop whoever has "
                f"that address, or choose another with Endpoints({purpose}=…), in a project with {_FLAGS[purpose]}"
            ) from error
        bound = address if address.port else address._replace(port=port)
        _log.info("listening", purpose=purpose, address=str(bound), tls=context is not None)
        if purpose == "metrics" and context is None and not address.is_loopback:
            _log.warning("tokens of scrapers cross the network unencrypted; give Endpoints a certificate and its key")
        return bound


def _certificate(options: Endpoints, clock: Clock) -> ServingCertificate | SelfSignedCertificate | None:
    if options.self_signed and options.metrics_address is not None:
        return SelfSignedCertificate(tuple(filter(None, ("localhost", options.metrics_address.host))), clock)
    if options.certificate is None or options.key is None:
        return None
    return ServingCertificate(options.certificate, options.key, clock)


@asynccontextmanager
async def _listening(app: web.Application, host: str, port: int, context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """Serves inside the block and yields the port; answers under way at the end have a second."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host or None, port, ssl_context=context).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def health_app(alive: Mapping[str, Check], ready: Mapping[str, Check]) -> web.Application:
    """Returns the application for `/healthz` and `/readyz`, each also for one check: `/readyz/watches`."""
    app = web.Application()
    for path, checks in (("/healthz", alive), ("/readyz", ready)):
        handler = _probe(path.strip("/"), checks)
        app.router.add_get(path, handler)
        app.router.add_get(path + "/{name}", handler)
    return app


def metrics_app(metrics: Metrics, scrapers: Scrapers | None) -> web.Application:
    """Returns the application for `/metrics`; with `scrapers`, only for tokens that they allow."""

    async def scrape(request: web.Request) -> web.Response:
        if scrapers is not None and (refusal := await _refusal(request, scrapers)):
            return refusal
        body, content_type = metrics.exposition(request.headers.get("Accept", ""))
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    app = web.Application()
    app.router.add_get("/metrics", scrape)
    return app


def _probe(endpoint: str, checks: Mapping[str, Check]) -> Handler:
    async def probe(request: web.Request) -> web.Response:
        name = request.match_info.get("name")
        if name is not None and name not in checks:
            return web.Response(status=404, text=f"expected one of {sorted(checks)}, got {name!r}\n")
        chosen = {name: checks[name]} if name is not None else dict(checks)
        return _answer(endpoint, {name: _why_not(check) for name, check in chosen.items()}, "verbose" in request.query)

    return probe


def _why_not(check: Check) -> str | None:
    """Returns the cause of a failed check; a check that raises has failed."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - any code may run in a check
        _log.exception("a health check raised")
        return f"the check itself raised {type(error).__name__}"


def _answer(endpoint: str, reasons: Mapping[str, str | None], verbose: bool) -> web.Response:
    """Returns the answer in the form of Kubernetes' own endpoints, with the causes."""
    failed = any(reason is not None for reason in reasons.values())
    if not failed and not verbose:
        return web.Response(text="ok")
    lines = [
        f"[+]{name} ok" if reason is None else f"[-]{name} failed: {' '.join(reason.split())}"
        for name, reason in reasons.items()
    ]
    lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
    return web.Response(status=503 if failed else 200, text="\n".join(lines) + "\n")


async def _refusal(request: web.Request, scrapers: Scrapers) -> web.Response | None:
    """Returns the refusal of a scrape; None if it may have the metrics."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return _unauthorized("expected a bearer token, got none")
    try:
        verdict = await scrapers.verdict(token.strip())
    except NavarchError as error:
        _log.warning(
            "a scrape was refused because its token could not be reviewed; the operator needs the ClusterRole "
            "system:auth-delegator",
            error=error,
        )
        return web.Response(status=503, text="the token could not be reviewed; the operator's log says why\n")
    if verdict == "unknown":
        return _unauthorized("the API server does not know this token")
    if verdict == "forbidden":
        return web.Response(status=403, text="the owner of this token may not get the non-resource URL /metrics\n")
    return None


def _unauthorized(text: str) -> web.Response:
    return web.Response(status=401, text=text + "\n", headers={"WWW-Authenticate": "Bearer"})
