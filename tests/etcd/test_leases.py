"""Leases on a real etcd."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from etcd_members import EtcdCluster
from navarch._base.clock import ManualClock
from navarch.errors import EtcdNotFoundError
from navarch.etcd import EtcdClient, EtcdOptions, WatchRequest

SECONDS = 60.0


async def test_a_lease_ends_and_takes_its_keys_along(etcd: EtcdClient, prefix: bytes) -> None:
    """Unless somebody keeps it."""
    async with asyncio.timeout(SECONDS), etcd.watch(WatchRequest(key=prefix)) as answers:
        await anext(answers)
        lease = await _put_for_a_second(etcd, prefix)
        assert [event.type for event in (await anext(answers)).events] == ["PUT"]
        assert [event.type for event in (await anext(answers)).events] == ["DELETE"]
    for call in (etcd.leases.time_left, etcd.leases.keep_once, etcd.leases.revoke):
        with pytest.raises(EtcdNotFoundError):
            await call(lease)


async def _put_for_a_second(etcd: EtcdClient, key: bytes) -> int:
    """The lease that the key hangs on; another one is taken if one was over before, as on a machine that stood still."""
    while True:
        lease = await etcd.leases.grant(1)
        try:
            await etcd.kv.put(key, b"", lease=lease.id)
        except EtcdNotFoundError:
            continue
        return lease.id


async def test_what_is_left_of_a_lease_can_be_asked(etcd: EtcdClient, prefix: bytes) -> None:
    """And which keys hang on it."""
    lease = await etcd.leases.grant(300, id=4711)
    assert (lease.id, lease.ttl) == (4711, 300)
    await etcd.kv.put(prefix, b"", lease=lease.id)
    left = await etcd.leases.time_left(lease.id, keys=True)
    assert (left.granted, left.keys) == (300, [prefix])
    assert 290 <= left.ttl <= 300
    assert lease.id in await etcd.leases.ids()
    await etcd.leases.revoke(lease.id)
    assert await etcd.kv.get(prefix) is None
    assert lease.id not in await etcd.leases.ids()


async def test_a_lease_is_kept_three_times_as_often_as_needed(member: EtcdCluster) -> None:
    """Until it is cancelled; when the lease is over, whoever keeps it is told."""
    clock = ManualClock()
    async with EtcdClient(EtcdOptions(endpoints=member.urls), clock=clock) as etcd:
        lease = await etcd.leases.grant(60)
        async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(_end_of(etcd.leases.keep(lease.id)))
            for _ in range(3):
                await clock.until_sleeping()
                await clock.advance(20)
            await clock.until_sleeping()
            await etcd.leases.revoke(lease.id)
            await clock.advance(20)
        assert "has expired" in keeping.result()


async def _end_of(keeping: Awaitable[None]) -> str:
    with pytest.raises(EtcdNotFoundError) as ended:
        await keeping
    return str(ended.value)
