"""What an archive keeps, deletes and never deletes, whoever else has put something beside it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock

import pytest
from obstore.store import MemoryStore

from etcd_operator.backup.archive import Archive, series_name
from etcd_operator.backup.snapshot_store import Bucket, StoreError
from etcd_operator.backup.snapshots import Snapshot
from etcd_operator.destinations import S3Source
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec, snapshots_in_use
from etcd_operator.restore.kinds import ClusterReference
from navarch import Context
from snapshot_files import a_snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "some/etcd.db"
FOREVER = timedelta()


@pytest.fixture
def bucket() -> Bucket:
    return Bucket(MemoryStore())


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return a_snapshot(tmp_path / "snapshot.db")


async def put(bucket: Bucket, snapshot: Snapshot, *hours: int, name: str = NAME) -> list[str]:
    """Some of a series, taken so many hours from now."""
    names = []
    for each in hours:
        taken = NOW + timedelta(hours=each)
        names.append(series_name(name, snapshot.revision, taken))
        await Archive(bucket).put(snapshot, names[-1], taken, "structure")
    return names


async def thinned(bucket: Bucket, *, most: int = 1, oldest: timedelta = FOREVER) -> list[str]:
    return [each.object for each in await Archive(bucket).thin(NAME, NOW, most=most, oldest=oldest)]


async def test_retention_leaves_the_safety_copies_of_restores(bucket: Bucket, snapshot: Snapshot) -> None:
    """They are beside the snapshot that was restored, and what the cluster had may be nowhere else."""
    old, _ = await put(bucket, snapshot, -2, -1)
    copy = f"{old}.before-back"
    await Archive(bucket).put(snapshot, copy, NOW - timedelta(days=9), "structure")
    _, last = await put(bucket, snapshot, -1, 0)
    assert await thinned(bucket, oldest=timedelta(days=1)) == [last]
    assert [name for name in await bucket.names(NAME) if name.startswith(copy)] == [copy, f"{copy}.manifest.json"]


async def test_retention_leaves_what_a_restore_has_yet_to_read(bucket: Bucket, snapshot: Snapshot) -> None:
    """It is fetched a second time when the members are stopped: without it, the cluster would stay as it is then."""
    old, older, new = await put(bucket, snapshot, -2, -1, 0)
    restores = [
        EtcdRestore(name=phase or "new", spec=restores_from(name)) for name, phase in ((old, ""), (older, "Done"))
    ]
    restores[1].status.phase = "Done"
    client = SimpleNamespace(list=AsyncMock(return_value=restores))
    spared = await snapshots_in_use("default", cast(Context, SimpleNamespace(client=client)))
    kept = await Archive(bucket).thin(NAME, NOW, most=1, oldest=FOREVER, spared=spared)
    assert [each.object for each in kept] == [old, new]
    assert older not in await bucket.names(NAME)


def restores_from(name: str) -> EtcdRestoreSpec:
    return EtcdRestoreSpec(etcd_cluster=ClusterReference(name="c"), s3=S3Source(path=f"bucket/{name}"))


async def test_retention_leaves_another_series_whose_name_begins_alike(bucket: Bucket, snapshot: Snapshot) -> None:
    """`etcd.db_v2` is a path of its own."""
    theirs = await put(bucket, snapshot, -9, -8, name=f"{NAME}_v2")
    own = await put(bucket, snapshot, -1, 0)
    assert await thinned(bucket) == own[1:]
    assert {*theirs} <= {*await bucket.names(NAME)}


async def test_retention_leaves_the_newest_of_another_cluster_with_the_same_path(
    bucket: Bucket, snapshot: Snapshot
) -> None:
    """It may be down, while this one goes on: only what is too old goes."""
    _, theirs = await put(bucket, replace(snapshot, cluster="b"), -30, -20)
    _, own = await put(bucket, replace(snapshot, cluster="a"), -1, 0)
    assert await thinned(bucket) == [theirs, own]
    assert await thinned(bucket, oldest=timedelta(hours=20)) == [theirs, own]
    assert await thinned(bucket, oldest=timedelta(hours=19)) == [own]


async def test_retention_leaves_the_newest_of_another_cluster_whose_clock_is_ahead(
    bucket: Bucket, snapshot: Snapshot
) -> None:
    """It is from the future for this one, and what its backup says it would go back to."""
    _, theirs = await put(bucket, replace(snapshot, cluster="b"), -3, 1)
    _, own = await put(bucket, replace(snapshot, cluster="a"), -2, 0)
    assert {*await thinned(bucket)} == {theirs, own}


async def test_a_path_does_not_fill_up_with_what_clusters_had_before_they_were_restored(
    bucket: Bucket, snapshot: Snapshot
) -> None:
    """Each restore makes another cluster of etcd: the newest of ten earlier ones stay, beside what is asked for."""
    hours = range(-20, 1)
    names = [(await put(bucket, replace(snapshot, cluster=f"{hour}"), hour))[0] for hour in hours]
    assert await thinned(bucket) == names[-11:]


async def test_retention_deletes_copies_where_they_are_and_no_originals(bucket: Bucket, snapshot: Snapshot) -> None:
    """Somebody has copied a series to another path of the store, with manifests that have the names of before."""
    originals = await put(bucket, snapshot, -2, -1, name="before/etcd.db")
    for name in await bucket.names("before/"):
        await bucket.rename(name, name.replace("before/", "some/"))
    copies = [name.replace("before/", "some/") for name in originals]
    assert await thinned(bucket) == copies[1:]
    names = await bucket.names("")
    assert {*originals} <= {*names}
    assert copies[0] not in names


async def test_what_is_put_away_meanwhile_is_not_tidied_up(bucket: Bucket, snapshot: Snapshot) -> None:
    """The safety copy of a restore that is under way; what is left of the series itself goes."""
    name = series_name(NAME, 7, NOW)
    for each in (name, f"{name}.before-back"):
        await bucket.put(f"{each}.partial", b"half")
    await Archive(bucket).tidy(NAME)
    assert await bucket.names(NAME) == [f"{name}.before-back.partial"]


async def test_a_clock_that_was_ahead_does_not_cost_the_backups_that_follow(bucket: Bucket, snapshot: Snapshot) -> None:
    """Those of a day that has not come yet go first: they would be the newest ones for ever."""
    ahead = await put(bucket, snapshot, 24, 25)
    old, new = await put(bucket, snapshot, -1, 0)
    assert {*await thinned(bucket, most=3)} == {ahead[1], old, new}
    assert await thinned(bucket, most=1) == [new]


async def test_a_safety_copy_takes_no_name_that_another_one_has(bucket: Bucket, snapshot: Snapshot) -> None:
    """A restore that is deleted and made again by the same name would put what was restored in the place of what was lost."""
    archive = Archive(bucket)
    for expected in ("copy", "copy-2", "copy-3"):
        assert await archive.unused("copy") == expected
        await archive.put(snapshot, expected, NOW, "structure")


class Mortal(Bucket):
    """Its operator is killed, and can do nothing more, when a name is given for so many times."""

    left = 0

    async def rename(self, old: str, new: str) -> int:
        await self._live()
        self.left -= 1
        return await super().rename(old, new)

    async def delete(self, name: str) -> None:
        await self._live()
        await super().delete(name)

    async def _live(self) -> None:
        if not self.left:
            raise StoreError("the operator was killed")


@pytest.mark.parametrize("renames", [0, 1])
async def test_a_backup_in_the_place_of_another_can_be_restored_whenever_the_operator_is_killed(
    tmp_path: Path, renames: int
) -> None:
    """What has the name is either of them, and no manifest speaks of the other one."""
    store = MemoryStore()
    first, second = a_snapshot(tmp_path / "first.db", 7), a_snapshot(tmp_path / "second.db", 9)
    await Archive(Bucket(store)).put(first, NAME, NOW, "structure")
    mortal = Mortal(store)
    mortal.left = renames
    with pytest.raises(StoreError, match="was killed"):
        await Archive(mortal).put(second, NAME, NOW, "structure")
    back = await Archive(Bucket(store)).fetch(NAME, tmp_path / "back.db")
    expected = second if renames else first
    assert (back.sha256, back.revision) == (expected.sha256, expected.revision)
