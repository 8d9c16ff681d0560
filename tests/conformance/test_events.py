"""Events on a real API server, which checks every field of them."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from navarch._base.clock import SystemClock
from navarch.client import Client
from navarch.controller.events import Recorder
from navarch.k8s.core.v1 import ConfigMap, Namespace
from navarch.k8s.events.v1 import Event

LIMIT = 60.0


@pytest.fixture
async def recorder(client: Client) -> AsyncIterator[Recorder]:
    made = Recorder(client, "example.com/shop-operator", "host-1", SystemClock(), random.Random())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(made.run())
        yield made
        running.cancel()


async def events(client: Client, count: int) -> list[Event]:
    """The events of the namespace, once there are so many."""
    async with asyncio.timeout(LIMIT), client.watch(Event) as changes:
        while len(found := list(await client.list(Event))) < count:
            await anext(changes)
    return found


async def test_three_times_the_same_is_one_event_with_a_series(client: Client, recorder: Recorder) -> None:
    """The first is there at once; the others are counted on it."""
    web = await client.create(ConfigMap(name="web"))
    recorder.record(web, "Failed", "no disk", type="Warning")
    (first,) = await events(client, 1)
    assert first.series is None
    for _ in range(2):
        recorder.record(web, "Failed", "no disk", type="Warning")
    await recorder.flush(LIMIT)
    (event,) = await client.list(Event)
    assert event.name == first.name
    assert event.series is not None
    assert event.series.count == 3
    assert event.regarding is not None
    assert event.regarding.uid == web.metadata.uid
    assert recorder.dropped == 0


async def test_event_that_was_deleted_is_made_anew_with_its_count(client: Client, recorder: Recorder) -> None:
    """The server takes a new Event that begins with a series."""
    web = await client.create(ConfigMap(name="web"))
    recorder.record(web, "Failed", "no disk")
    await events(client, 1)
    await client.delete_all(Event)
    recorder.record(web, "Failed", "no disk")
    await recorder.flush(LIMIT)
    (event,) = await client.list(Event)
    assert event.series is not None
    assert event.series.count == 2


async def test_longest_words_and_notes_are_taken(client: Client, recorder: Recorder) -> None:
    """The limits are the server's own."""
    web = await client.create(ConfigMap(name="w" * 253))
    recorder.record(web, "R" * 128, "€" * 2000, action="A" * 128, related=web)
    await recorder.flush(LIMIT)
    (event,) = await client.list(Event)
    assert event.note == "€" * 341
    assert recorder.dropped == 0


async def test_events_about_cluster_scoped_objects_are_in_the_default_namespace(
    client: Client, recorder: Recorder
) -> None:
    """The server takes them nowhere else."""
    home = await client.get(Namespace, client.options.namespace)
    recorder.record(home, "Seen", "it is there")
    await recorder.flush(LIMIT)
    found = await client.list(Event, namespace="default", fields={"regarding.name": home.name})
    assert [event.reason for event in found] == ["Seen"]


async def test_events_in_a_namespace_that_is_going_away_are_dropped_without_a_word(
    client: Client, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is still there or gone already."""
    leaving = Namespace(name=f"{client.options.namespace}-leaving")
    await client.create(leaving)
    web = await client.create(
        ConfigMap(
            name="web",
            namespace=leaving.name,
        )
    )
    await client.delete(Namespace, leaving.name)
    recorder.record(web, "Failed", "no disk")
    await recorder.flush(LIMIT)
    assert recorder.dropped == 1
    assert caplog.records == []
