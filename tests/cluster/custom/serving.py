"""A server in this process with nothing but CRDs and custom kinds, and requests to it."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from navarch._base.background import Background
from navarch._base.clock import SystemClock
from navarch.cluster.server.admission.chain import Chain
from navarch.cluster.server.builtin import builtin_types
from navarch.cluster.server.custom import Conversion, CustomKinds, scale
from navarch.cluster.server.endpoints.call import Kernel
from navarch.cluster.server.publishing.discovery import Discovery
from navarch.cluster.server.publishing.openapi import OpenApi
from navarch.cluster.server.publishing.pages import Pages
from navarch.cluster.server.registry import Registry
from navarch.cluster.server.request import ApiRequest, Reply, User
from navarch.cluster.server.server import ApiServer, Parts
from navarch.cluster.server.types import Catalog
from navarch.cluster.server.watching import Watches
from navarch.cluster.storage.memory import MemoryStorage
from navarch.k8s.published import published

__all__ = ["CRDS", "Answer", "Asking", "serving"]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Answer = tuple[int, dict[str, Any]]


class _Anybody:
    async def authenticate(self, _request: ApiRequest) -> User:
        return User("admin")

    async def impersonated(self, _request: ApiRequest, user: User) -> User:
        return user

    def why_not(self, *_: Any) -> None:
        return None

    def started(self, *_: Any, **__: Any) -> None: ...

    def completed(self, *_: Any, **__: Any) -> None: ...


class Asking:
    """Asks a server; `warnings` are those of the last answer."""

    def __init__(self, server: ApiServer, storage: MemoryStorage) -> None:
        self._server = server
        self.storage = storage
        self.warnings: list[str] = []

    async def __call__(
        self, method: str, path: str, body: Any = None, *, media_type: str = "application/json", accept: str = ""
    ) -> Answer:
        """The status code and the answer."""
        reply = await self.reply(method, path, body, media_type=media_type, accept=accept)
        self.warnings = reply.warnings
        return reply.status, json.loads(reply.body) if reply.body.startswith(b"{") else {}

    async def reply(
        self, method: str, path: str, body: Any = None, *, media_type: str = "application/json", accept: str = ""
    ) -> Reply:
        """The answer as it is."""
        parts = urlsplit(path)
        headers = {"content-type": media_type, "accept": accept or "application/json", "user-agent": "unknown"}
        data = b"" if body is None else json.dumps(body).encode()
        query = parse_qs(parts.query, keep_blank_values=True)
        return await self._server.handle(
            ApiRequest(method=method, path=parts.path, query=query, headers=headers, body=data)
        )


@asynccontextmanager
async def serving(storage: MemoryStorage | None = None, conversion: Conversion | None = None) -> AsyncIterator[Asking]:
    """A server that follows its CRDs."""
    clock, storage, anybody, background = SystemClock(), storage or MemoryStorage(), _Anybody(), Background()
    catalog, watches = Catalog(builtin_types(clock)), Watches(storage, clock)
    kernel = Kernel(Registry(storage), catalog, watches, Chain(), clock, random.Random(1))
    kinds = CustomKinds(kernel, conversion)
    pages = Pages(published(), Discovery(catalog, published()), OpenApi(published(), kinds.documents), lambda: None)
    parts = Parts(
        kernel=kernel,
        authenticator=anybody,
        authorizer=anybody,
        audit=anybody,
        endpoints={("*", "*", "scale"): scale},
        pages=pages,
    )
    await kinds.start()
    background.start(kinds.run(), "custom kinds")
    background.start(watches.run(), "watches")
    try:
        yield Asking(ApiServer(parts), storage)
    finally:
        await background.stop()
