"""Backups of real members, to a folder and to a store like S3; and stores that misbehave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clusters import NAME, SECONDS, example, serves
from etcd_operator.backup import BackupPolicy, EtcdBackup, EtcdBackupSpec, LocalSource, Manifest
from etcd_operator.backup.archive import surplus
from etcd_operator.backup.snapshot_store import DamagedSnapshotError
from etcd_operator.backup.snapshots import check, take
from etcd_operator.connector import ConnectedEtcd
from etcd_operator.declaration import etcd_operator
from navarch.etcd import EtcdClient, EtcdOptions
from navarch.testing import Cluster
from object_store import SECRET, object_store, s3, secret
from workload import endpoints_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def backup(**fields: Any) -> EtcdBackup:
    return EtcdBackup(name="nightly", spec=EtcdBackupSpec(cluster_name=NAME, **fields))


async def made(cluster: Cluster) -> EtcdBackup:
    return await cluster.eventually(
        lambda: cluster.get(EtcdBackup, "nightly"),
        lambda found: found.status.succeeded,
        timeout=SECONDS,
        what="a backup that counts",
    )


async def refused(cluster: Cluster, message: str) -> EtcdBackup:
    return await cluster.eventually(
        lambda: cluster.get(EtcdBackup, "nightly"),
        lambda found: not found.status.succeeded and message in found.status.reason,
        timeout=SECONDS,
        what=f"a backup that fails: {message}",
    )


@asynccontextmanager
async def one_member(cluster: Cluster, folder: Path | None = None) -> AsyncIterator[EtcdClient]:
    """A cluster of one, with ten keys in it."""
    async with cluster.run(etcd_operator(backups=folder)):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        async with EtcdClient(EtcdOptions(endpoints=await endpoints_of(cluster, NAME))) as etcd:
            for number in range(10):
                await etcd.kv.put(b"/kept/%d" % number, b"%d" % number)
            yield etcd


@pytest.mark.cluster(nodes=1)
async def test_a_backup_to_a_folder_is_what_etcd_had(cluster: Cluster, tmp_path: Path) -> None:
    """The file is there under its name, with its checksum and etcd's revision, and nothing else is."""
    async with one_member(cluster, tmp_path) as etcd:
        revision = (await etcd.kv.put(b"/last", b"1")).header.revision
        await cluster.apply(backup(local=LocalSource(path="some/etcd.db")))
        status = (await made(cluster)).status
        found = check(tmp_path / "default" / "some" / "etcd.db")
        assert (status.etcd_revision, status.etcd_version) == (revision, "3.5.1")
        assert (found.revision, found.sha256, found.size) == (revision, status.sha256, status.size)
        names = {path.name for path in (tmp_path / "default" / "some").iterdir()}
        assert names == {"etcd.db", "etcd.db.manifest.json"}


@pytest.mark.cluster(nodes=1)
async def test_backups_by_interval_go_to_s3_and_only_so_many_stay(cluster: Cluster) -> None:
    """Two stay, the newest among them, each with its manifest."""
    async with object_store() as store, one_member(cluster):
        await cluster.create(secret())
        policy = BackupPolicy(backup_interval_in_second=1, max_backups=2)
        await cluster.apply(backup(s3=s3(store), backup_policy=policy))
        first = (await made(cluster)).status.object
        await cluster.eventually(
            lambda: cluster.get(EtcdBackup, "nightly"),
            lambda found: found.status.kept == 2 and f"bucket/{first}" not in store.objects,
            timeout=SECONDS,
        )
        policy = BackupPolicy(backup_interval_in_second=3600, max_backups=2)
        await cluster.apply(backup(s3=s3(store), backup_policy=policy))  # none is under way when that is observed
        last = await cluster.eventually(
            lambda: cluster.get(EtcdBackup, "nightly"),
            lambda found: found.status.observed_generation == found.metadata.generation,
            timeout=SECONDS,
        )
        assert f"bucket/{last.status.object}" in store.objects
        assert f"bucket/{last.status.object}.manifest.json" in store.objects
        assert not any(name.endswith(".partial") for name in store.objects)


@pytest.mark.cluster(nodes=1)
async def test_stores_that_misbehave_make_no_backup_and_tell_no_secret(cluster: Cluster) -> None:
    """Wrong keys, a store that is full, one that keeps half: each is named, nothing counts, and then it works."""
    async with object_store() as store, one_member(cluster):
        await cluster.apply(backup(s3=s3(store)))
        await refused(cluster, "Secret aws does not exist")
        await cluster.create(secret("AKIDWRONG"))
        told = [await refused(cluster, "the store refused")]
        store.refuse = 507
        await cluster.apply(secret(), force=True)
        told.append(await refused(cluster, "is full"))
        store.refuse, store.cut = 0, 1000
        told.append(await refused(cluster, "the store returned 1000 bytes"))
        assert not any(name.endswith(".manifest.json") for name in store.objects)
        store.cut = 0
        told.append(await made(cluster))
        assert not any(SECRET in repr(each) or "AKID" in repr(each) for each in told)


@pytest.mark.cluster(nodes=1)
async def test_a_snapshot_that_was_cut_or_changed_is_noticed(cluster: Cluster, tmp_path: Path) -> None:
    """A snapshot with a missing or changed byte is refused, whichever byte it is."""
    async with one_member(cluster) as etcd:
        path = tmp_path / "snapshot.db"
        taken = await take(ConnectedEtcd(etcd, await endpoints_of(cluster, NAME)), path)
    content = path.read_bytes()
    assert taken.size == len(content)
    for bad in (b"", content[:32], content[:-1], content[1:], content[:5000] + b"x" + content[5001:]):
        path.write_bytes(bad)
        with pytest.raises(DamagedSnapshotError):
            check(path)


@pytest.mark.cluster(controllers=False)
@pytest.mark.parametrize(
    ("path", "message"), [("a/../../b", "below the operator's folder"), ("a/b", "EtcdCluster example does not exist")]
)
async def test_a_folder_is_not_left_and_a_cluster_has_to_be_there(
    cluster: Cluster, tmp_path: Path, path: str, message: str
) -> None:
    """The status names a path outside the folder, and a missing cluster."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.create(backup(local=LocalSource(path=path)))
        await refused(cluster, message)


def test_retention_goes_by_time_and_leaves_the_newest() -> None:
    """Retention counts by number and age, and never by names or revisions."""
    hours = timedelta(hours=1)
    series = [
        Manifest(object=f"{n}", sha256="", size=1, revision=n, version="", taken=NOW - n * hours, verified="structure")
        for n in (9, 3, 1)
    ]
    assert [each.object for each in surplus(series, NOW, most=2, oldest=timedelta())] == ["9"]
    assert [each.object for each in surplus(series, NOW, most=0, oldest=2 * hours)] == ["9", "3"]
    assert [each.object for each in surplus(series, NOW + 99 * hours, most=1, oldest=hours)] == ["9", "3"]
    assert surplus(series, NOW, most=0, oldest=timedelta()) == []
    assert surplus(series, NOW, most=4, oldest=timedelta()) == []
    assert surplus([], NOW, most=1, oldest=hours) == []
