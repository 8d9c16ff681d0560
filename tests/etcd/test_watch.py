"""Watches on a real etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from etcd.leading import until_led
from etcd_members import PROGRAMS, EtcdCluster
from navarch.errors import EtcdCompactedError
from navarch.etcd import (
    DeleteRequest,
    EtcdClient,
    EtcdEvent,
    EtcdOptions,
    PutRequest,
    WatchRequest,
    WatchResponse,
    prefix_end,
)

SECONDS = 60.0


def under(prefix: bytes, *, start_revision: int = 0, progress_notify: bool = False) -> WatchRequest:
    return WatchRequest(
        key=prefix,
        range_end=prefix_end(prefix),
        prev_kv=True,
        start_revision=start_revision,
        progress_notify=progress_notify,
    )


async def standing(answers: AsyncIterator[WatchResponse]) -> None:
    async with asyncio.timeout(SECONDS):
        assert (await anext(answers)).created


async def take(answers: AsyncIterator[WatchResponse], count: int) -> list[EtcdEvent]:
    events: list[EtcdEvent] = []
    async with asyncio.timeout(SECONDS):
        while len(events) < count:
            events.extend((await anext(answers)).events)
    assert len(events) == count, f"expected {count} events, got {events}"
    return events


async def test_a_watch_shows_writes_with_what_was_there_before(etcd: EtcdClient, prefix: bytes) -> None:
    """From the moment at which it stands."""
    key = prefix + b"a"
    async with etcd.watch(under(prefix)) as answers:
        await standing(answers)
        await etcd.kv.put(key, b"1")
        await etcd.kv.put(key, b"2")
        await etcd.kv.delete(key)
        events = await take(answers, 3)
    assert [(event.type, event.kv.value) for event in events] == [("PUT", b"1"), ("PUT", b"2"), ("DELETE", b"")]
    assert [event.prev_kv.value if event.prev_kv else None for event in events] == [None, b"1", b"2"]


async def test_a_watch_begins_at_an_earlier_revision(etcd: EtcdClient, prefix: bytes) -> None:
    """What happened since is shown first."""
    await etcd.kv.put(prefix + b"a", b"")
    second = (await etcd.kv.put(prefix + b"b", b"")).header.revision
    async with etcd.watch(under(prefix, start_revision=second)) as answers:
        assert [event.kv.key for event in await take(answers, 1)] == [prefix + b"b"]


async def test_a_watch_is_told_how_far_etcd_is(etcd: EtcdClient, prefix: bytes) -> None:
    """Also if nothing happens under its keys."""
    async with etcd.watch(under(prefix, progress_notify=True)) as answers:
        await standing(answers)
        revision = (await etcd.kv.put(b"/elsewhere", b"")).header.revision
        async with asyncio.timeout(SECONDS):
            while (answer := await anext(answers)).header.revision < revision:
                assert answer.events == []


async def test_a_watch_of_forgotten_revisions_says_what_is_kept(etcd: EtcdClient, prefix: bytes) -> None:
    """The oldest revision that can be had."""
    first = (await etcd.kv.put(prefix, b"1")).header.revision
    second = (await etcd.kv.put(prefix, b"2")).header.revision
    await etcd.kv.compact(second)
    async with etcd.watch(under(prefix, start_revision=first)) as answers:
        with pytest.raises(EtcdCompactedError, match=f"before {second}") as refused:
            await take(answers, 1)
    assert refused.value.revision == second


async def test_a_compaction_does_not_disturb_a_watch_that_has_seen_all(etcd: EtcdClient, prefix: bytes) -> None:
    """It goes on."""
    async with etcd.watch(under(prefix)) as answers:
        await standing(answers)
        revision = (await etcd.kv.put(prefix, b"1")).header.revision
        await take(answers, 1)
        await etcd.kv.compact(revision)
        await etcd.kv.put(prefix, b"2")
        assert [event.kv.value for event in await take(answers, 1)] == [b"2"]


@pytest.mark.parametrize("find_etcd", PROGRAMS[1:], indirect=True)  # etcd 3.5.1 may crash when its file grows meanwhile
async def test_much_at_once_comes_in_one_piece(etcd: EtcdClient, prefix: bytes) -> None:
    """etcd sends it in fragments; whoever watches does not notice."""
    values = {prefix + b"%d" % number: b"%d" % number * 500_000 for number in range(10)}
    first = (await etcd.kv.put(b"/elsewhere", b"")).header.revision
    for key, value in values.items():
        await etcd.kv.put(key, value)
    async with etcd.watch(under(prefix, start_revision=first)) as answers:
        await standing(answers)
        events = (await anext(answers)).events
    assert {event.kv.key: event.kv.value for event in events} == values


async def test_writes_of_one_transaction_come_together(etcd: EtcdClient, prefix: bytes) -> None:
    """They have one revision; to be begun again between them would lose the rest."""
    keys = [prefix + b"%d" % number for number in range(50)]
    await etcd.kv.put(keys[0], b"")
    async with etcd.watch(under(prefix)) as answers:
        await standing(answers)
        await etcd.kv.txn([], [PutRequest(key=key, value=b"x") for key in keys])
        await etcd.kv.txn([], [DeleteRequest(key=key) for key in keys])
        async with asyncio.timeout(SECONDS):
            assert len((await anext(answers)).events) == 50
            assert len((await anext(answers)).events) == 50


async def test_a_watch_goes_on_after_its_member_was_killed(members: EtcdCluster, prefix: bytes) -> None:
    """At another member: nothing is missed, and nothing comes twice."""
    async with EtcdClient(EtcdOptions(endpoints=members.urls)) as etcd, etcd.watch(under(prefix)) as answers:
        await standing(answers)
        await etcd.kv.put(prefix + b"1", b"")
        await take(answers, 1)
        members.members[0].kill()
        async with EtcdClient(EtcdOptions(endpoints=members.urls[1:])) as rest:
            await until_led(rest, members.urls[1:])
            await rest.kv.put(prefix + b"2", b"")
            await rest.kv.put(prefix + b"3", b"")
        assert [event.kv.key[-1:] for event in await take(answers, 2)] == [b"2", b"3"]


async def test_a_watch_goes_on_after_a_restart(lone_member: EtcdCluster, prefix: bytes) -> None:
    """Of the only member there is; what was written before it stopped is not shown again."""
    options = EtcdOptions(endpoints=lone_member.urls, patience=SECONDS)
    async with EtcdClient(options) as etcd, etcd.watch(under(prefix)) as answers:
        await standing(answers)
        await etcd.kv.put(prefix + b"1", b"")
        await take(answers, 1)
        lone_member.members[0].daemon.stop()
        lone_member.members[0].start(lone_member.names)
        await etcd.kv.get(prefix)
        await etcd.kv.put(prefix + b"2", b"")
        assert [event.kv.key[-1:] for event in await take(answers, 1)] == [b"2"]
