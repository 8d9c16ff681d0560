"""A server of built-in kinds that lets everybody do everything."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cluster.open_server import Anybody, NoAdmission, request
from navarch._base.clock import ManualClock
from navarch._base.tasks import TaskSet
from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.kinds.builtin.networking.allocator import ServiceAllocator
from navarch.cluster.server.objects.registry import Registry
from navarch.cluster.server.objects.storage_reflector import StorageReflector
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.objects.watches import Watches
from navarch.cluster.server.pipeline.endpoints.call import Kernel
from navarch.cluster.server.pipeline.subresources import BUILTIN_ENDPOINTS
from navarch.cluster.server.server import ApiServer, ServerParts
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.cluster.storage import Storage
from navarch.cluster.storage.memory import MemoryStorage

__all__ = ["MERGE", "Asking", "serving"]

MERGE = "application/merge-patch+json"


class Asking:
    """Asks a server about the namespace `default`; `warnings` are those of the last answer."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.warnings: list[str] = []

    async def __call__(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Any:
        """The status code and the answer."""
        asked = request(method, path, body, content_type=media_type, accept="application/json", user_agent="tester")
        reply = await self._server.handle(asked)
        self.warnings = reply.warnings
        return reply.status, json.loads(reply.body)


async def _no_page(_: ApiRequest) -> Reply:
    return Reply(404, b"{}")


@asynccontextmanager
async def serving(storage: Storage | None = None) -> AsyncIterator[Asking]:
    """A server with nothing stored."""
    clock, rng, anybody, background = ManualClock(), random.Random(1), Anybody(), TaskSet()
    storage = storage or MemoryStorage()
    addresses = ServiceAllocator(clock, rng)
    services = StorageReflector(storage, {"/registry/services/specs/": addresses.changed})
    watches = Watches(storage, clock)
    catalog = Catalog(builtin_types(clock, addresses))
    kernel = Kernel(Registry(storage), catalog, watches, NoAdmission(), anybody, clock, rng)
    parts = ServerParts(
        kernel=kernel,
        authenticator=anybody,
        impersonator=anybody,
        audit=anybody,
        endpoints=BUILTIN_ENDPOINTS,
        pages=_no_page,
        refresh=services.catch_up,
    )
    await services.start()
    background.start(watches.run(), "watches")
    try:
        yield Asking(ApiServer(parts))
    finally:
        await background.stop()
        await services.stop()
