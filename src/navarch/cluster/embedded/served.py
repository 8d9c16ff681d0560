"""A cluster behind HTTPS: in the loop of its owner, or in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from navarch.cluster.embedded.certificates import server_context
from navarch.cluster.embedded.cluster import ADMIN, EmbeddedCluster
from navarch.cluster.embedded.http import HttpServer
from navarch.cluster.embedded.kubeconfig import Access

__all__ = ["ThreadedCluster", "new_loop", "serving"]

T = TypeVar("T")

_NAME = "navarch"


@asynccontextmanager
async def serving(cluster: EmbeddedCluster, *, name: str = _NAME, port: int = 0) -> AsyncIterator[Access]:
    """Serves a cluster that runs, on loopback, while the block lasts."""
    authority = cluster.authority
    context = server_context(authority, authority.server_pair(cluster.clock, cluster.service_address))
    async with HttpServer(cluster.server, context, port=port) as http:
        if cluster.is_equipped:
            await cluster.reached_at(*http.address)
        yield Access(
            name=name,
            url=http.url,
            authority=authority.pair.certificate,
            admin=authority.client_pair(cluster.clock, ADMIN),
            token=cluster.token,
        )


class ThreadedCluster:
    """A cluster behind HTTPS in a thread of its own, so that clients that block can use it; a `with`.

    `make` is called in that thread, and everything of the cluster belongs to its loop.
    """

    def __init__(self, make: Callable[[], EmbeddedCluster] = EmbeddedCluster) -> None:
        self._make = make
        self._thread = threading.Thread(target=self._run, name="navarch-cluster", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._cluster: EmbeddedCluster | None = None
        self._access: Access | None = None

    @property
    def access(self) -> Access:
        """How it is reached."""
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
        """The cluster. What waits for something must be asked of it through `submit`."""
        assert self._cluster is not None, "the cluster must be running"
        return self._cluster

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Does something of the cluster in its own thread."""
        assert self._loop is not None, "the cluster must be running"
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        try:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            async with self._make() as self._cluster, serving(self._cluster) as self._access:
                self._ready.set()
                await self._stop.wait()
        except BaseException as error:  # noqa: BLE001 - whoever started the thread gets it
            self._failure = error
        finally:
            self._ready.set()


def new_loop() -> asyncio.AbstractEventLoop:
    """The faster event loop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - an extra
    except ImportError:
        return asyncio.new_event_loop()
    loop: Any = uvloop.new_event_loop()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    return loop
