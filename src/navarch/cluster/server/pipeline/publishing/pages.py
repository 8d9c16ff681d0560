"""Every path that is no resource: discovery, OpenAPI, version, health, metrics."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

import msgspec

from navarch.cluster.server.pipeline.publishing.discovery import Discovery
from navarch.cluster.server.pipeline.publishing.health import Health, health_reply
from navarch.cluster.server.pipeline.publishing.openapi import OpenApi
from navarch.cluster.server.pipeline.routing import no_such_resource
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.cluster.server.wire.status_errors import method_not_allowed
from navarch.k8s.published import Published

__all__ = ["Pages"]

Page = Callable[[ApiRequest], Awaitable[Reply]]
"""Serves one path."""

_TEXT = "text/plain; charset=utf-8"
_ANY_METHOD = frozenset({"/", "/openapi/v2", "/metrics"})
"""What Kubernetes serves without looking at the method."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The names of machines, as Go has them."""
_BUILD = {
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": f"{sys.platform}/{_ARCHITECTURES.get(os.uname().machine, os.uname().machine)}",
}
"""How the server was built: clients do not read a version without it."""
_COMPATIBILITY = ("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor")
_VERSION = ("major", "minor", *_COMPATIBILITY, "gitVersion", *_BUILD)
_ROOTS = ("/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class Pages:
    """Finds what serves a path; `others` have pages of their own."""

    def __init__(
        self,
        published: Published,
        discovery: Discovery,
        openapi: OpenApi,
        health: Health,
        others: Mapping[str, Page] = MappingProxyType({}),
    ) -> None:
        self._published = published
        self._others = others
        self._discovery = discovery
        self._openapi = openapi
        self._health = health

    async def __call__(self, request: ApiRequest) -> Reply:
        """The answer; 404 for what is nowhere, 405 for what can only be read."""
        if (health := health_reply(request, self._health)) is not None:
            return health
        other = self._others.get(request.path)
        reply = await other(request) if other is not None else self._reply(request)
        if reply is None:
            return self._absent(request.path)
        if request.method != "GET" and request.path not in _ANY_METHOD:
            raise method_not_allowed()
        return reply

    def _reply(self, request: ApiRequest) -> Reply | None:
        if request.path.startswith("//"):
            return None
        path = request.path.rstrip("/") or "/"
        if path == "/version":
            return Reply(200, self._version())
        if path == "/":
            return Reply(200, msgspec.json.encode({"paths": sorted([*_ROOTS, *self._others])}))
        return self._discovery.reply(request) or self._openapi.reply(request)

    def _version(self) -> bytes:
        """As Go lays it out: people look at it, too."""
        known = {**self._published.version(), **_BUILD}
        return msgspec.json.format(msgspec.json.encode({name: known[name] for name in _VERSION}), indent=2)

    def _absent(self, path: str) -> Reply:
        """Below a group that is served a Status says so; elsewhere Kubernetes' router does, in its own words."""
        root, _, rest = path.removeprefix("/").partition("/")
        group = rest.partition("/")[0]
        if root == "api" or (root == "apis" and self._discovery.has_group(group)):
            raise no_such_resource()
        return Reply(404, b"404 page not found\n", _TEXT)
