"""Clusters as tests use them: in the test's own loop, or over HTTPS in a thread beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from navarch._base.clock import SystemClock
from navarch._base.movable import MovableClock
from navarch.client import Client, connect
from navarch.cluster.embedded import control_plane  # noqa: F401 - clusters import it in a thread, where pytest's own importer fails now and then
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.https_front import ThreadedCluster
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.testing.cluster import Cluster

__all__ = ["in_process", "over_https"]


@asynccontextmanager
async def in_process(components: ComponentOptions | None = None) -> AsyncIterator[Cluster]:
    """A fresh cluster without a network; its time can be moved, unless it has programs to run."""
    clock = SystemClock() if components is not None and components.nodes else MovableClock()
    async with EmbeddedCluster(clock=clock, components=components) as embedded:
        yield Cluster(embedded.client(), embedded)


@asynccontextmanager
async def over_https(components: ComponentOptions | None = None) -> AsyncIterator[Cluster]:
    """A fresh cluster over HTTPS on loopback; clients that block may use it too."""
    with ThreadedCluster(partial(EmbeddedCluster, components=components)) as threaded:
        engine = _Threaded(threaded)
        async with connect(threaded.access.config()) as client:
            try:
                yield Cluster(client, engine, threaded.access)
            finally:
                await engine.close()


class _Threaded:
    """A cluster in another thread, as if it were in this one."""

    def __init__(self, threaded: ThreadedCluster) -> None:
        self._threaded = threaded
        self._clients: list[Client] = []

    @property
    def audit(self) -> AuditLog:
        return self._threaded.cluster.audit

    async def revision(self) -> int:
        return await asyncio.wrap_future(self._threaded.submit(self._threaded.cluster.revision()))

    async def changed_since(self, revision: int) -> int:
        return await asyncio.wrap_future(self._threaded.submit(self._threaded.cluster.changed_since(revision)))

    async def compact(self, revision: int) -> None:
        await asyncio.wrap_future(self._threaded.submit(self._threaded.cluster.compact(revision)))

    def token_of(self, name: str, *groups: str) -> str:
        return self._threaded.cluster.token_of(name, *groups)

    def client_with(self, token: str, namespace: str) -> Client:
        client = connect(self._threaded.access.config(token, namespace))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        """Closes the clients that were given out."""
        for client in self._clients:
            await client.close()
