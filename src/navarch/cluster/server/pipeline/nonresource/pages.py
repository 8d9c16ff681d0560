"""Every path that is no resource: discovery, OpenAPI, version, health, metrics."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.pipeline.authentication.tokens import ISSUER
from navarch.cluster.server.pipeline.nonresource.discovery import Discovery
from navarch.cluster.server.pipeline.nonresource.health import Health, health_reply
from navarch.cluster.server.pipeline.nonresource.openapi import OpenApi
from navarch.cluster.server.pipeline.routing import no_such_resource
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.cluster.server.wire.status_errors import method_not_allowed
from navarch.k8s.published import Published

_PROGRAMS: Final = ("curl", "Wget", "Mozilla/5.0")
CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
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


def laid_out(request: ApiRequest, reply: Reply) -> Reply:
    """The answer as whoever asks likes to read it; streams and what is no JSON stay as they are."""
    if not _is_wanted(request) or reply.stream is not None or not reply.content_type.startswith("application/json"):
        return reply
    if not reply.body or request.path.startswith(("/openapi", "/.well-known")):
        return reply
    return replace(reply, body=msgspec.json.format(reply.body, indent=2))


def _is_wanted(request: ApiRequest) -> bool:
    if request.parameter("pretty"):
        return request.flag("pretty")
    return request.headers.get("user-agent", "").startswith(_PROGRAMS)


class OpenId:
    """The two documents of one key."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key

    async def configuration(self, request: ApiRequest) -> Reply:
        """Who issues tokens, and where the keys are: where this document was found."""
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{request.headers.get('host', ISSUER.removeprefix('https://'))}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self._key.algorithm],
        }
        return Reply(200, msgspec.json.encode(document))

    async def keys(self, _request: ApiRequest) -> Reply:
        """The public half of the key."""
        return Reply(200, msgspec.json.encode({"keys": [self._key.web_key()]}), "application/jwk-set+json")


Page = Callable[[ApiRequest], Awaitable[Reply]]
"""Serves one path."""


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
