"""The client."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing

from navarch._base.clock import Clock, SystemClock
from navarch._base.closing import Closing
from navarch.etcd.access import Access
from navarch.etcd.cluster import Cluster
from navarch.etcd.gateway import Gateway
from navarch.etcd.kv import Kv
from navarch.etcd.leases import Leases
from navarch.etcd.maintenance import Maintenance
from navarch.etcd.messages import WatchResponse
from navarch.etcd.options import EtcdOptions
from navarch.etcd.session import EtcdSession
from navarch.etcd.watch import WatchRequest, watching

__all__ = ["EtcdClient"]


class EtcdClient(Closing):
    """A client of one etcd cluster, for one event loop: `async with EtcdClient(options) as etcd`.

    Opens nothing before the first call; after the block it is closed for good.
    """

    def __init__(
        self,
        options: EtcdOptions,
        *,
        session: EtcdSession | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        # Only so that clients that fail at the same time do not all try again at the same time.
        rng = rng or random.Random()  # noqa: S311
        self._gateway = Gateway(options, session or EtcdSession(), clock or SystemClock(), rng)
        self.kv = Kv(self._gateway)
        self.leases = Leases(self._gateway)
        self.cluster = Cluster(self._gateway)
        self.maintenance = Maintenance(self._gateway)
        self.access = Access(self._gateway)

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[WatchResponse]]:
        """What is written from the request's revision on; see `watching`.

        async with etcd.watch(WatchRequest(key=b"/a/", range_end=prefix_end(b"/a/"))) as answers:
            async for answer in answers: ...
        """
        return aclosing(watching(self._gateway, request))

    async def close(self) -> None:
        """Closes every connection; may be called twice."""
        await self._gateway.close()
