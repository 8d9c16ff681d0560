"""The operator on a cluster that somebody else runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from etcd_operator.backup import EtcdBackup
from etcd_operator.kinds import EtcdCluster
from etcd_operator.restore import EtcdRestore
from navarch.client import Client
from navarch.operator import Operator, serve
from navarch.operator.crds import prepare_crds


@asynccontextmanager
async def running(client: Client, operator: Operator) -> AsyncIterator[None]:
    """Runs while the block lasts; its kinds are known when it begins."""
    await prepare_crds(client, [EtcdCluster, EtcdBackup, EtcdRestore], "install")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(serve(client, operator))
        try:
            yield
        finally:
            task.cancel()
