"""Answers, streams and connections that go wrong: the cache mends itself, and nothing is lost."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

import rig
from chaos.campaign import Campaign, campaign
from chaos.faults import (
    Answered,
    CutInMidObject,
    Delayed,
    Fault,
    FaultyTransport,
    Garbled,
    GoneEvent,
    Refused,
    anything,
    lists,
    watches,
    whole_lists,
)
from chaos.proxy import FaultyProxy
from chaos.waiting import until
from gadgets import CONFIG_MAP, EVENT, compact, note
from navarch._base.clock import SystemClock
from navarch.client import Client, Options, WatchOptions
from navarch.client.watch import _GRACE_SECONDS

pytestmark = pytest.mark.real

HOUR_SECONDS = 3600.0


async def test_gone_as_a_status_leads_to_a_new_list(client: Client, faulty: Client, wire: FaultyTransport) -> None:
    """Where a watch wanted to go on, the server answers 410: what was deleted meanwhile is told."""
    async with campaign(client, faulty, CONFIG_MAP) as world:
        wire.inject(CutInMidObject(), on=watches)
        wire.inject(Refused(), on=watches, times=3)
        gone = wire.inject(Answered(410), on=watches, times=3)
        await world.until_deleted(5)
        await until(lambda: gone.struck == 3, "the watch to have been refused three times")  # lists tell changes, too
        await world.until_told(20)
        await world.survived()


@pytest.mark.parametrize("metadata_only", [False, True])
async def test_gone_as_an_event_leads_to_a_new_list(
    client: Client, faulty: Client, wire: FaultyTransport, metadata_only: bool
) -> None:
    """In the middle of a stream, with deletions before the next list; of whole objects, and of their metadata alone."""
    async with campaign(client, faulty, CONFIG_MAP, metadata_only=metadata_only) as world:
        for _ in range(2):
            gone = wire.inject(GoneEvent(), on=watches)
            wire.inject(Refused(), times=None)
            await world.until_deleted(5)
            await until(lambda: gone.struck == 1, "the event to strike")  # noqa: B023 - awaited at once
            wire.heal()
            await world.until_told(20)
        await world.survived()


async def test_revision_that_the_store_forgot_leads_to_a_new_list(
    client: Client,
    proxied: Client,
    proxy: FaultyProxy,
    rig_cluster: rig.Cluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A real 410: etcd has compacted what happened while the cache was cut off, deletions among it."""
    async with campaign(client, proxied, EVENT) as world:
        await proxy.refuse()
        proxy.cut_all()
        await world.until_deleted(5)
        last = await client.create(note(client, "last"))
        compact(rig_cluster, last.metadata["resourceVersion"])
        await proxy.pass_through()
        await world.survived()
        assert "it begins anew" in caplog.text


@pytest.mark.parametrize("fault", [CutInMidObject(), CutInMidObject(silent=True)])
async def test_stream_cut_in_mid_object_goes_on(
    client: Client, faulty: Client, wire: FaultyTransport, fault: Fault
) -> None:
    """Whether the end is an error or looks like a regular one; every version is told."""
    async with campaign(client, faulty, CONFIG_MAP) as world:
        for _ in range(5):
            cut = wire.inject(fault, on=watches)
            await world.until_told(20)
            assert cut.struck == 1
        await world.survived(resumed=True)


async def test_garbage_in_a_stream_is_outlived(client: Client, faulty: Client, wire: FaultyTransport) -> None:
    """What does not speak Kubernetes, as a gateway that gives up, is waited out."""
    async with campaign(client, faulty, CONFIG_MAP) as world:
        wire.inject(Garbled(), on=watches, times=3)
        await world.until_told(20)
        await world.survived()


async def test_list_that_breaks_in_the_middle_is_begun_anew(
    client: Client, faulty: Client, wire: FaultyTransport
) -> None:
    """Half of a list deletes nothing; the next one comes in pages."""
    async with campaign(client, faulty, CONFIG_MAP) as world:
        wire.inject(GoneEvent(), on=watches)
        cut = wire.inject(CutInMidObject(), on=whole_lists)
        await world.until_told(20)
        assert cut.struck == 1
        assert any("limit" in request.query for request in wire.requests)
        await world.survived()


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_storm_of_refusals_is_waited_out(
    client: Client, faulty: Client, wire: FaultyTransport, code: int
) -> None:
    """The server says no to everything for a while; the watch goes on where it ended."""
    async with campaign(client, faulty, CONFIG_MAP) as world:
        storm = wire.inject(Answered(code, retry_after=1 if code == 429 else None), on=anything, times=3)
        wire.inject(CutInMidObject(), on=watches)
        await world.until_told(20)
        assert storm.struck == 3
        await world.survived(resumed=True)


async def test_storm_of_refusals_hits_lists_too(client: Client, faulty: Client, wire: FaultyTransport) -> None:
    """When the revision is gone and then the list is refused."""
    async with campaign(client, faulty, CONFIG_MAP) as world:
        wire.inject(GoneEvent(), on=watches)
        for code in (429, 500, 403, 401, 503):
            wire.inject(Answered(code), on=anything)
        wire.inject(Refused(), on=anything)
        await world.until_told(20)
        await world.survived()


async def test_pages_are_listed_where_they_are_asked_for(client: Client, wire: FaultyTransport) -> None:
    """Slowly, with refusals between the pages."""
    faulty = Client(wire, Options(namespace=client.options.namespace, page_size=3))
    async with campaign(client, faulty, CONFIG_MAP) as world:
        wire.inject(GoneEvent(), on=watches)
        wire.inject(Delayed(request=0.2), on=lists, times=3)
        wire.inject(Answered(429), on=lists)
        await world.until_told(20)
        await world.survived()


async def test_latency_only_delays(client: Client, proxied: Client, proxy: FaultyProxy) -> None:
    """Slow links lose nothing."""
    async with campaign(client, proxied, CONFIG_MAP) as world:
        proxy.delay = 0.3
        await world.until_told(50)
        proxy.cut_all()
        await world.until_told(50)
        proxy.delay, proxy.throttle = 0.0, 40_000
        await world.until_told(50)
        await proxy.pass_through()
        await world.survived(resumed=True)


async def test_connections_that_are_reset_and_refused_come_back(
    client: Client, proxied: Client, proxy: FaultyProxy
) -> None:
    """Every version is told, and no connection is left over."""
    async with campaign(client, proxied, CONFIG_MAP) as world:
        before = proxy.open
        for _ in range(3):
            await proxy.refuse()
            proxy.cut_all()
            await SystemClock().sleep(0.3)
            await proxy.pass_through()
            await world.until_told(10)
        await world.survived(resumed=True)
        await until(lambda: proxy.open <= before, f"no more than the {before} connections from before")


async def test_half_open_connection_is_noticed_within_45_seconds(
    client: Client, proxied: Client, proxy: FaultyProxy
) -> None:
    """Nothing comes and nothing says so: the one test here that has to wait as long as an operator would."""
    assert WatchOptions().timeout_seconds + _GRACE_SECONDS < 45
    async with campaign(client, proxied, CONFIG_MAP) as world:
        proxy.silence_all()
        await world.until_told(5, seconds=90.0)
        await world.survived(resumed=True)
        await until(lambda: proxy.open == 1, "one connection")


class JumpingClock(SystemClock):
    """The machine's time of day is set by hand; seconds still take a second."""

    def __init__(self) -> None:
        self.jumped = timedelta()

    def now(self) -> datetime:
        return super().now() + self.jumped


async def test_clock_that_jumps_changes_nothing(client: Client, wire: FaultyTransport) -> None:
    """A day ahead, then two back, with a connection lost each time."""
    clock = JumpingClock()
    faulty = Client(wire, Options(namespace=client.options.namespace), clock=clock)
    async with campaign(client, faulty, CONFIG_MAP, clock=clock) as world:
        for days in (1, -2):
            clock.jumped = timedelta(days=days)
            wire.inject(CutInMidObject(), on=watches)
            await world.until_told(20)
            assert _staleness(world) < HOUR_SECONDS
        await world.survived(resumed=True)


def _staleness(world: Campaign) -> float:
    return max(informer.staleness() for informer in world.cache.informers())
