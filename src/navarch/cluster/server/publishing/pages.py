"""Every path that is no resource: discovery, OpenAPI, version, health, metrics."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from navarch.cluster.server.publishing.discovery import Discovery
from navarch.cluster.server.publishing.openapi import OpenApi
from navarch.cluster.server.refusal import Refusal
from navarch.cluster.server.request import ApiRequest, Reply
from navarch.k8s.published import Published

__all__ = ["Health", "Pages"]

Health = Callable[[], str | None]
"""None while all is well, else what is not."""

_TEXT = "text/plain; charset=utf-8"
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


class Pages:
    """Finds what serves a path."""

    def __init__(self, published: Published, discovery: Discovery, openapi: OpenApi, health: Health) -> None:
        self._published = published
        self._discovery = discovery
        self._openapi = openapi
        self._health = health

    def __call__(self, request: ApiRequest) -> Reply:
        """The answer; refuses with 404 what is nowhere, and with 405 what can only be read."""
        reply = self._reply(request)
        if reply is None:
            raise Refusal(404, "NotFound", "the server could not find the requested resource", details={})
        if request.method not in {"GET", "HEAD"}:
            raise Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        return reply

    def _reply(self, request: ApiRequest) -> Reply | None:
        path = request.path.rstrip("/") or "/"
        if path == "/version":
            return Reply(200, msgspec.json.encode(self._published.version()))
        if path in _HEALTH or path.rpartition("/")[0] in _HEALTH:
            return self._healthy(request)
        if path == "/":
            roots = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            return Reply(200, msgspec.json.encode({"paths": roots}))
        return self._discovery.reply(request) or self._openapi.reply(request)

    def _healthy(self, request: ApiRequest) -> Reply:
        fault = self._health()
        if fault is not None:
            return Reply(500, f"[-]storage failed: {fault}\n{request.path[1:]} check failed\n".encode(), _TEXT)
        verbose = "verbose" in request.query
        text = f"[+]ping ok\n[+]storage ok\n{request.path[1:]} check passed\n" if verbose else "ok"
        return Reply(200, text.encode(), _TEXT)
