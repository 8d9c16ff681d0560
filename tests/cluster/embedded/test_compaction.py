"""What a cluster of the command line forgets, and when."""

from __future__ import annotations

import asyncio

import pytest

from navarch._base.clock import ManualClock
from navarch.client import Client, Listing
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.program import compact_periodically
from navarch.errors import Gone
from navarch.k8s.core.v1 import ConfigMap


async def test_the_past_is_forgotten_after_five_to_ten_minutes() -> None:
    """What was read before five minutes still holds; after ten it is gone."""
    clock = ManualClock()
    async with EmbeddedCluster(clock=clock) as cluster, asyncio.TaskGroup() as group:
        client = cluster.client()
        for name in ("a", "b", "c"):
            await client.create(ConfigMap(name=name))
        forgetting = group.create_task(compact_periodically(cluster, clock))
        await clock.until_sleeping()
        version = (await client.create(ConfigMap(name="d"))).metadata.resource_version
        await client.create(ConfigMap(name="e"))
        await clock.advance(301)
        assert len([each async for each in _as_of(client, version)]) >= 4
        await clock.advance(301)
        with pytest.raises(Gone):
            _ = [each async for each in _as_of(client, version)]
        forgetting.cancel()


def _as_of(client: Client, version: str) -> Listing[ConfigMap]:
    return client.list(ConfigMap, resource_version=version, resource_version_match="Exact")
