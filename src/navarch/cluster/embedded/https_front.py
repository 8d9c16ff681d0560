"""A cluster behind HTTPS: in the event loop of its owner (`serve_https`), or in a thread (`ThreadedCluster`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from navarch.cluster.embedded.cluster import ADMIN, EmbeddedCluster
from navarch.cluster.embedded.credentials import ClusterAccess, server_context
from navarch.cluster.embedded.http_server import HttpServer

T = TypeVar("T")

_NAME = "navarch"


@asynccontextmanager
async def serve_https(cluster: EmbeddedCluster, *, name: str = _NAME, port: int = 0) -> AsyncIterator[ClusterAccess]:
    """Serves a running cluster on loopback while the block lasts."""
    authority = cluster.authority
    context = server_context(authority, authority.server_pair(cluster.clock, cluster.service_address))
    async with HttpServer(cluster.server, context, port=port) as http:
        if cluster.has_components:
            await cluster.set_api_server_address(*http.address)
        yield ClusterAccess(
            name=name,
            url=http.url,
            authority=authority.pair.certificate,
            admin=authority.client_pair(cluster.clock, ADMIN),
            token=cluster.token,
        )


class ThreadedCluster:
    """A cluster behind HTTPS in its own thread, for clients that block; use it as a `with`.

    `make` is called in that thread; the cluster belongs to the event loop of the thread.
    """

    def __init__(self, make: Callable[[], EmbeddedCluster] = EmbeddedCluster) -> None:
        self._make = make
        self._thread = threading.Thread(target=self._run, name="navarch-cluster", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._cluster: EmbeddedCluster | None = None
        self._access: ClusterAccess | None = None

    @property
    def access(self) -> ClusterAccess:
        """The URL and the credentials of the cluster."""
        assert self._access is not None, "the cluster must be running"
        return self._access

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def cluster(self) -> EmbeddedCluster:
        """The cluster. Run its coroutines with `submit`."""
        assert self._cluster is not None, "the cluster must be running"
        return self._cluster

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs a coroutine in the thread of the cluster."""
        assert self._loop is not None, "the cluster must be running"
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        try:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            async with self._make() as self._cluster, serve_https(self._cluster) as self._access:
                self._ready.set()
                await self._stop.wait()
        except BaseException as error:  # noqa: BLE001 - `__enter__` raises it
            self._failure = error
        finally:
            self._ready.set()


def new_loop() -> asyncio.AbstractEventLoop:
    """Returns a uvloop event loop if uvloop is installed, else one of asyncio."""
    try:
        import uvloop  # noqa: PLC0415 - an extra
    except ImportError:
        return asyncio.new_event_loop()
    loop: Any = uvloop.new_event_loop()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    return loop
