"""Runs the controller manager for one test, on an embedded cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from navarch.cluster.controllers.manager import ControllerManager, ControllerManagerOptions
from navarch.testing.cluster import Cluster


@asynccontextmanager
async def controlled(cluster: Cluster, options: ControllerManagerOptions | None = None) -> AsyncIterator[None]:
    """It works while the block lasts."""
    async with asyncio.TaskGroup() as group:
        plane = group.create_task(ControllerManager(cluster.client, options).run(), name="control plane")
        try:
            yield
        finally:
            plane.cancel()
