"""A server in this process with nothing but CRDs and custom kinds, and requests to it."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cluster.open_server import Anybody, NoAdmission, request
from navarch._base.clock import SystemClock
from navarch._base.tasks import TaskSet
from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.kinds.custom import Conversion
from navarch.cluster.server.objects.registry import Registry
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.objects.watches import Watches
from navarch.cluster.server.pipeline.crd_controller import CrdController
from navarch.cluster.server.pipeline.endpoints.call import Kernel
from navarch.cluster.server.pipeline.nonresource.discovery import DiscoveryDocuments
from navarch.cluster.server.pipeline.nonresource.openapi import OpenApi
from navarch.cluster.server.pipeline.nonresource.pages import HealthReport, NonResourcePages
from navarch.cluster.server.pipeline.subresources.scale import scale_custom
from navarch.cluster.server.server import ApiServer, ServerParts
from navarch.cluster.server.wire.request import Reply
from navarch.cluster.storage.memory import MemoryStorage
from navarch.k8s.published import published

__all__ = ["CRDS", "Answer", "Asking", "serving"]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Answer = tuple[int, dict[str, Any]]


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
        accept = accept or "application/json"
        asked = request(method, path, body, content_type=media_type, accept=accept, user_agent="unknown")
        return await self._server.handle(asked)


@asynccontextmanager
async def serving(storage: MemoryStorage | None = None, conversion: Conversion | None = None) -> AsyncIterator[Asking]:
    """A server that follows its CRDs."""
    clock, storage, anybody, background = SystemClock(), storage or MemoryStorage(), Anybody(), TaskSet()
    catalog, watches = Catalog(builtin_types(clock)), Watches(storage, clock)
    kernel = Kernel(Registry(storage), catalog, watches, NoAdmission(), anybody, clock, random.Random(1))
    kinds = CrdController(kernel, conversion)
    pages = NonResourcePages(
        published(), DiscoveryDocuments(catalog, published()), OpenApi(published(), kinds.documents), HealthReport
    )
    parts = ServerParts(
        kernel=kernel,
        authenticator=anybody,
        impersonator=anybody,
        audit=anybody,
        endpoints={("*", "*", "scale"): scale_custom},
        pages=pages,
        refresh=anybody.refresh,
    )
    await kinds.start()
    background.start(kinds.run(), "custom kinds")
    background.start(watches.run(), "watches")
    try:
        yield Asking(ApiServer(parts), storage)
    finally:
        await background.stop()
