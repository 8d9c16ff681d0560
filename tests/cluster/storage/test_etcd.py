"""What a store in etcd promises beyond its process, and what etcd's own tools see of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cluster.storage.watching import SECONDS, take
from etcd_members import PROGRAMS, EtcdMember, running_etcd
from navarch.cluster.storage.etcd import EtcdStorage
from navarch.cluster.storage.protocol import StorageError, TooLargeError
from navarch.etcd import EtcdClient, EtcdOptions
from rig import programs

WRITERS = 50
WRITES = 20
KILLS = 20


@pytest.mark.parametrize("find_etcd", PROGRAMS)
async def test_keys_lie_in_etcd_as_they_were_given(find_etcd: Callable[[], Path], tmp_path: Path) -> None:
    """`etcdctl get` shows them, and what somebody else writes there is seen."""
    with running_etcd(find_etcd, tmp_path) as cluster:
        options = EtcdOptions(endpoints=cluster.urls)
        storage = EtcdStorage(options)
        async with EtcdClient(options) as etcd, storage.watch("/registry/", after=1) as watcher:
            await storage.put("/registry/pods/default/web", b'{"kind":"Pod"}', expected=0)
            found = await etcd.kv.get(b"/registry/pods/default/web")
            assert found is not None
            assert found.value == b'{"kind":"Pod"}'
            await etcd.kv.put(b"/registry/pods/default/other", b"{}")
            assert [event.key[-5:] for event in await take(watcher, 2)] == ["t/web", "other"]
        await storage.close()


@pytest.mark.parametrize("find_etcd", PROGRAMS)
async def test_what_is_too_large_for_etcd_is_told(find_etcd: Callable[[], Path], tmp_path: Path) -> None:
    """It takes a megabyte and a half."""
    with running_etcd(find_etcd, tmp_path) as cluster:
        storage = EtcdStorage(EtcdOptions(endpoints=cluster.urls))
        for size in (1_700_000, 2_500_000):
            with pytest.raises(TooLargeError, match="etcdserver: request is too large"):
                await storage.put("/large", b"x" * size, expected=0)
        await storage.put("/large", b"x" * 1_500_000, expected=0)
        await storage.close()


@pytest.mark.parametrize("find_etcd", PROGRAMS)
async def test_events_go_by_themselves(find_etcd: Callable[[], Path], tmp_path: Path) -> None:
    """They share a lease of an hour and a minute; nothing else has one."""
    with running_etcd(find_etcd, tmp_path) as cluster:
        options = EtcdOptions(endpoints=cluster.urls)
        storage = EtcdStorage(options)
        keys = ("/registry/events/default/a", "/registry/events/default/b", "/registry/eventsources/default/c")
        for key in keys:
            await storage.put(key, b"{}", expected=0)
        async with EtcdClient(options) as etcd:
            stored = [await etcd.kv.get(key.encode()) for key in keys]
            leases = [each.lease for each in stored if each is not None]
            assert leases[0] == leases[1] != leases[2] == 0
            assert 3600 < (await etcd.leases.time_left(leases[0])).granted <= 3660
        await storage.close()


@pytest.mark.parametrize("find_etcd", PROGRAMS)
async def test_a_large_list_comes_whole(find_etcd: Callable[[], Path], tmp_path: Path) -> None:
    """It is read in several pieces of one revision."""
    with running_etcd(find_etcd, tmp_path) as cluster:
        storage = EtcdStorage(EtcdOptions(endpoints=cluster.urls, timeout=SECONDS))
        keys = [f"/p/{number:04d}" for number in range(2500)]
        for some in range(0, len(keys), 100):
            await asyncio.gather(*(storage.put(key, b"{}", expected=0) for key in keys[some : some + 100]))
        page = await storage.page("/p/")
        assert ([item.key for item in page.items], page.remaining) == (keys, 0)
        await storage.close()


async def write_until_killed(storage: EtcdStorage, prefix: str, acknowledged: list[str]) -> None:
    """Each key is noted when etcd has acknowledged it; ends with the first that it does not."""
    try:
        for number in range(WRITES):
            await storage.put(f"{prefix}{number}", b"{}", expected=0)
            acknowledged.append(f"{prefix}{number}")
    except StorageError:
        return


async def kill_after(member: EtcdMember, acknowledged: list[str], count: int) -> None:
    while len(acknowledged) < count:
        await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.001)
    member.kill()


@asynccontextmanager
async def opened(options: EtcdOptions) -> AsyncIterator[EtcdStorage]:
    storage = EtcdStorage(options)
    try:
        yield storage
    finally:
        await storage.close()


@pytest.mark.real
async def test_nothing_acknowledged_is_lost_when_etcd_is_killed(tmp_path: Path) -> None:
    """Again and again in the middle of a thousand writes; the same store serves again each time.

    Not with the etcd from PyPI: before 3.5.3 a crash under load may lose a write (etcd-io/etcd#13766).
    """
    rng = random.Random(9)
    with running_etcd(lambda: programs.ETCD.path, tmp_path) as cluster:
        (member,) = cluster.members
        async with opened(EtcdOptions(endpoints=cluster.urls, timeout=SECONDS, patience=0.1)) as storage:
            lost_nothing: set[str] = set()
            for kill in range(KILLS):
                acknowledged: list[str] = []
                async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
                    for writer in range(WRITERS):
                        tasks.create_task(write_until_killed(storage, f"/{kill:02d}/{writer:02d}/", acknowledged))
                    await kill_after(member, acknowledged, rng.randrange(1, 300))
                member.start(cluster.names)
                member.until_healthy()
                lost_nothing |= set(acknowledged)
                stored = {item.key for item in (await storage.page("")).items}
                assert lost_nothing <= stored, f"lost after kill {kill}: {sorted(lost_nothing - stored)}"
