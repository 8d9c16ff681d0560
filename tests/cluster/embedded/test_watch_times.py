"""When watches end, by a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from navarch._base.clock import ManualClock
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.wire.request import ApiRequest


async def test_watch_ends_when_it_was_asked_to() -> None:
    """Not before, and hardly later."""
    clock = ManualClock()
    async with EmbeddedCluster(clock=clock) as cluster, asyncio.TaskGroup() as group:
        request = ApiRequest(
            method="GET",
            path="/api/v1/configmaps",
            query={"watch": ["true"], "timeoutSeconds": ["3"]},
            headers={"authorization": f"Bearer {cluster.token}"},
        )
        reply = await cluster.server.handle(request)
        assert reply.stream is not None
        reading = group.create_task(_read(reply.stream))
        await clock.advance(2.9)
        assert not reading.done(), "expected the watch to last for three seconds"
        await clock.advance(0.3)
        assert reading.done(), "expected the watch to be over after three seconds"


async def _read(stream: AsyncIterator[bytes]) -> list[bytes]:
    return [chunk async for chunk in stream]
