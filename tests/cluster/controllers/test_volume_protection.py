"""What is in use stays, although it is not known yet who uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from conformance.controllers.test_volumes import claim, until_protected, user
from conformance.controllers.watching import until_gone
from navarch.cache import Cache
from navarch.client import Client
from navarch.cluster.controllers.controller_context import ControllerContext, PodIndex
from navarch.cluster.controllers.volumes.protection import VolumeProtection
from navarch.controller.events import Recorder
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.testing.cluster import Cluster

pytestmark = pytest.mark.cluster(controllers=False)


@asynccontextmanager
async def protected(client: Client) -> AsyncIterator[PodIndex]:
    """Claims are protected by somebody who knows of no pod before the book is opened."""
    cache = Cache(client, client.clock, client.rng)
    context = ControllerContext(
        client, cache, Recorder(client, "test", "test", client.clock, client.rng), PodIndex(cache)
    )
    protection = VolumeProtection(context)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(cache.run())]
        await cache.wait_synced()
        running.append(group.create_task(protection.run()))
        try:
            yield context.pods
        finally:
            for task in running:
                task.cancel()


async def test_claim_of_a_pod_that_is_not_known_yet_stays(cluster: Cluster) -> None:
    """The server is asked before a claim goes; it goes when the pod has gone."""
    client = cluster.client
    async with protected(client) as pods:
        for name in ("data", "idle"):
            await client.create(claim(name, "by-hand"))
            await until_protected(client, name)
        await client.create(user("user", "data"))
        await client.bind("user", "somewhere")
        for name in ("data", "idle"):
            await client.delete(PersistentVolumeClaim, name)
        await until_gone(client, PersistentVolumeClaim, "idle")
        assert (await client.get(PersistentVolumeClaim, "data")).metadata.deletion_timestamp is not None
        pods.open()
        await client.delete(Pod, "user", grace_seconds=0)
        await until_gone(client, PersistentVolumeClaim, "data")
        pods.close()
