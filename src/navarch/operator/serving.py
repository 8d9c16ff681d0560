"""The HTTP side of the endpoints. Imported only where there are any: aiohttp's server takes memory."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from navarch.errors import NavarchError
from navarch.observe.logs import logger
from navarch.observe.metrics import Metrics
from navarch.operator.endpoints import Check
from navarch.operator.scrapers import Scrapers

__all__ = ["health_app", "listening", "metrics_app"]

Handler = Callable[[web.Request], Awaitable[web.Response]]

_SHUTDOWN_SECONDS = 1.0

_log = logger("navarch.operator.endpoints")


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int, context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """Serves inside; gives the port. Answers that are under way at the end have a second."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host or None, port, ssl_context=context).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def health_app(alive: Mapping[str, Check], ready: Mapping[str, Check]) -> web.Application:
    """`/healthz` and `/readyz`, each also for one check by its name: `/readyz/watches`."""
    app = web.Application()
    for path, checks in (("/healthz", alive), ("/readyz", ready)):
        handler = _probe(path.strip("/"), checks)
        app.router.add_get(path, handler)
        app.router.add_get(path + "/{name}", handler)
    return app


def metrics_app(metrics: Metrics, scrapers: Scrapers | None) -> web.Application:
    """`/metrics`; for those whom `scrapers` knows, if it is given."""

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
    """What the check says; one that raises is a check that fails."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - any code may run in a check
        _log.exception("a health check raised")
        return f"the check itself raised {type(error).__name__}"


def _answer(endpoint: str, reasons: Mapping[str, str | None], verbose: bool) -> web.Response:
    """In the form of Kubernetes' own endpoints, but with the reasons."""
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
    """Why this request gets no metrics; None if it may have them."""
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
