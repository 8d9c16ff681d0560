"""Members, maintenance and fail-over on a real etcd."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from etcd.leading import until_led
from etcd_members import EtcdCluster
from navarch.errors import EtcdExhaustedError, EtcdNotFoundError, EtcdRefusedError, EtcdUnavailableError
from navarch.etcd import AlarmMember, EtcdClient, EtcdOptions, Member

SECONDS = 60.0


async def test_a_member_comes_as_a_learner_votes_and_goes(members: EtcdCluster) -> None:
    """The life of a member, as an operator leads it. Nobody is added before the others have known each other for a while."""
    async with EtcdClient(EtcdOptions(endpoints=members.urls, patience=SECONDS)) as etcd:
        new = members.new_member()
        added = await etcd.cluster.add([new.peer_url], learner=True)
        assert (added.is_learner, added.peer_urls, added.name) == (True, [new.peer_url], "")
        with pytest.raises(EtcdRefusedError, match="exist"):
            await etcd.cluster.add([new.peer_url])
        new.start(members.names, joining=True)
        promoted = await _promoted(etcd, added.id)
        assert {member.id: member.is_learner for member in promoted}[added.id] is False
        new.until_healthy()
        updated = await etcd.cluster.update(added.id, [new.peer_url, "http://127.0.0.2:1"])
        assert len({member.id: member for member in updated}[added.id].peer_urls) == 2
        await etcd.cluster.remove(added.id)
        assert added.id not in {member.id for member in await etcd.cluster.members()}
        with pytest.raises(EtcdNotFoundError):
            await etcd.cluster.remove(added.id)


async def _promoted(etcd: EtcdClient, member: int) -> list[Member]:
    """A learner that has not caught up is refused."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await etcd.cluster.promote(member)
            except EtcdRefusedError as error:
                assert "in sync with leader" in str(error)  # noqa: PT017 - tried again until it has


async def test_a_member_says_how_it_is(etcd: EtcdClient, member: EtcdCluster) -> None:
    """Version, size, who leads."""
    status = await etcd.maintenance.status(member.urls[0])
    (only,) = await etcd.cluster.members()
    assert status.version.startswith("3.")
    assert (status.leader, status.header.member_id) == (only.id, only.id)
    assert status.db_size >= status.db_size_in_use > 0
    assert status.raft_applied_index > 0
    assert await etcd.maintenance.alarms() == []


async def test_a_member_says_which_version_the_cluster_has(etcd: EtcdClient, member: EtcdCluster) -> None:
    """Its own, and the one that all have agreed on."""
    said = await etcd.maintenance.versions(member.urls[0])
    assert said.etcdserver.rpartition(".")[0] == said.etcdcluster.rpartition(".")[0]
    assert said.etcdserver == (await etcd.maintenance.status(member.urls[0])).version


async def test_space_is_given_back(etcd: EtcdClient, member: EtcdCluster, prefix: bytes) -> None:
    """After compaction and defragmentation the database is smaller."""
    for _ in range(20):
        revision = (await etcd.kv.put(prefix, b"x" * 200_000)).header.revision
    await etcd.kv.compact(revision, physical=True)
    before = await etcd.maintenance.status(member.urls[0])
    await etcd.maintenance.defragment(member.urls[0])
    after = await etcd.maintenance.status(member.urls[0])
    assert after.db_size < before.db_size - 2_000_000


async def test_a_snapshot_is_complete(etcd: EtcdClient, member: EtcdCluster, prefix: bytes) -> None:
    """Its end is the checksum of the rest."""
    await etcd.kv.put(prefix, b"x" * 1_000_000)
    snapshot = b"".join([piece async for piece in etcd.maintenance.snapshot(member.urls[0])])
    assert len(snapshot) > 1_000_000
    assert hashlib.sha256(snapshot[:-32]).digest() == snapshot[-32:]


async def test_members_agree_and_leadership_moves(members: EtcdCluster) -> None:
    """The same checksum everywhere; another leader when asked for."""
    async with EtcdClient(EtcdOptions(endpoints=members.urls)) as etcd:
        revision = (await etcd.kv.put(b"/a", b"1")).header.revision
        await asyncio.gather(*(_until_at(etcd, url, revision) for url in members.urls))
        hashes = [await etcd.maintenance.hash_kv(url, revision=revision) for url in members.urls]
        assert len({found.hash for found in hashes}) == 1
        by_id = {(await etcd.maintenance.status(url)).header.member_id: url for url in members.urls}
        leader = (await etcd.maintenance.status(members.urls[0])).leader
        other = next(member for member in by_id if member != leader)
        with pytest.raises(EtcdRefusedError, match="not leader"):
            await etcd.maintenance.move_leader(by_id[other], to=leader)
        await etcd.maintenance.move_leader(by_id[leader], to=other)
        assert (await etcd.maintenance.status(by_id[other])).leader == other


async def _until_at(etcd: EtcdClient, url: str, revision: int) -> None:
    async with asyncio.timeout(SECONDS):
        while (await etcd.maintenance.status(url)).header.revision < revision:
            pass


async def test_calls_go_on_when_a_member_is_killed(members: EtcdCluster, prefix: bytes) -> None:
    """Reads and writes alike, whichever member it was; a write is not carried out twice."""
    async with EtcdClient(EtcdOptions(endpoints=members.urls)) as etcd:
        await etcd.kv.put(prefix, b"1")
        members.members[0].kill()
        found = await etcd.kv.get(prefix)
        assert found is not None
        assert found.value == b"1"
        await until_led(etcd, members.urls[1:])
        await etcd.kv.put(prefix, b"2")
        found = await etcd.kv.get(prefix)
        assert found is not None
        assert found.version == 2


async def test_without_a_quorum_the_error_names_every_endpoint(members: EtcdCluster) -> None:
    """What was tried, and what each said."""
    options = EtcdOptions(endpoints=members.urls, timeout=0.5, patience=1.0)
    async with EtcdClient(options) as etcd:
        members.members[0].kill()
        members.members[1].kill()
        with pytest.raises(EtcdUnavailableError) as failed:
            await etcd.kv.get(b"/a")
        for url in members.urls:
            assert url in str(failed.value)
    async with EtcdClient(EtcdOptions(endpoints=members.urls)) as etcd:
        assert len(await etcd.cluster.members(linearizable=False)) == 3


async def _fill(etcd: EtcdClient) -> None:
    for number in range(100):
        await etcd.kv.put(b"/%d" % (number % 3), b"x" * 100_000)


async def _alarms(etcd: EtcdClient) -> list[AlarmMember]:
    """A write may be refused a moment before the alarm is there."""
    async with asyncio.timeout(SECONDS):
        while True:
            if found := await etcd.maintenance.alarms():
                return found


async def test_alarms_are_seen_and_taken_back(small_member: EtcdCluster) -> None:
    """A member that is full says so; when there is space again, the alarm is taken back by hand."""
    url = small_member.urls[0]
    async with EtcdClient(EtcdOptions(endpoints=(url,))) as etcd:
        with pytest.raises(EtcdExhaustedError, match="database space exceeded"):
            await _fill(etcd)
        (alarm,) = await _alarms(etcd)
        assert alarm.alarm == "NOSPACE"
        revision = (await etcd.maintenance.status(url)).header.revision
        await etcd.kv.compact(revision, physical=True)
        await etcd.maintenance.defragment(url)
        assert await etcd.maintenance.disarm(alarm) == [alarm]
        assert await etcd.maintenance.alarms() == []
        await etcd.kv.put(b"/0", b"")
