"""Google's and Azure's stores, as they should be and as they should not; and Secrets that hold no keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from etcd_operator.backup import Archive, StoreOpener
from etcd_operator.backup.archive import series_name
from etcd_operator.backup.snapshot_store import BackupError, DestinationError
from etcd_operator.destinations import (
    AbsSource,
    BackupDestination,
    GcsSource,
    PvcSource,
    S3Source,
    object_of,
    path_of,
    with_object,
)
from navarch.k8s.core.v1 import Secret
from navarch.testing import Cluster
from snapshot_files import a_snapshot
from stores import ACCOUNT, KEY, TOKEN, Azure, Google, Store, secret, service_account, serving

pytestmark = pytest.mark.cluster(controllers=False)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Kind:
    """One of them, with the Secret that it takes and one that it does not take."""

    store: type[Store]
    right: Secret
    wrong: Secret

    def place(self, url: str) -> BackupDestination:
        if self.store is Google:
            return BackupDestination(gcs=GcsSource(path="bucket/some/etcd.db", gcp_secret="keys", endpoint=url))
        return BackupDestination(abs=AbsSource(path="bucket/some/etcd.db", abs_secret="keys", endpoint=url))


GOOGLE = Kind(Google, secret("keys", access_token=TOKEN), secret("keys", access_token="wrong"))
AZURE = Kind(
    Azure,
    secret("keys", storage_account=ACCOUNT, storage_key=KEY),
    secret("keys", storage_account="stranger", storage_key=KEY),
)
both = pytest.mark.parametrize("kind", [GOOGLE, AZURE], ids=["google", "azure"])


@asynccontextmanager
async def opened(cluster: Cluster, kind: Kind, given: Secret) -> AsyncIterator[tuple[Store, Archive, str]]:
    store = kind.store()
    async with serving(store):
        await cluster.apply(given)
        found, name = await StoreOpener().open(kind.place(store.url), cluster.client, "default")
        yield store, Archive(found), name


@both
async def test_a_snapshot_comes_back_as_it_went_and_old_ones_go(cluster: Cluster, kind: Kind, tmp_path: Path) -> None:
    """The snapshot and its manifest are stored, and no partial object remains."""
    snapshot = a_snapshot(tmp_path / "snapshot.db")
    async with opened(cluster, kind, kind.right) as (store, archive, name):
        times = [NOW - timedelta(hours=number) for number in (2, 1, 0)]
        names = [series_name(name, snapshot.revision, taken) for taken in times]
        for own, taken in zip(names, times, strict=True):
            await archive.put(snapshot, own, taken, "structure")
        kept = await archive.thin(name, NOW, most=2, oldest=timedelta())
        assert [each.object for each in kept] == names[1:]
        back = await archive.fetch(names[2], tmp_path / "back.db")
        assert (back.sha256, back.revision, back.version) == (snapshot.sha256, 7, "3.5.1")
        assert set(store.objects) == {
            f"bucket/{each.object}{ending}" for each in kept for ending in ("", ".manifest.json")
        }


@both
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"refuse": 507}, "is full"),
        ({"cut": 1000}, "the store returned 1000 bytes"),
        ({"cut_copies": 1000}, "the store has 1000 bytes under the snapshot's name"),
    ],
)
async def test_a_store_that_misbehaves_holds_no_backup_that_counts(
    cluster: Cluster, kind: Kind, tmp_path: Path, fault: dict[str, int], message: str
) -> None:
    """It is full, keeps half, or copies half: each is named, and no secret is."""
    snapshot = a_snapshot(tmp_path / "snapshot.db")
    async with opened(cluster, kind, kind.right) as (store, archive, name):
        for field, value in fault.items():
            setattr(store, field, value)
        with pytest.raises(BackupError, match=message) as raised:
            await archive.put(snapshot, name, NOW, "structure")
        assert not any(each.endswith(".manifest.json") for each in store.objects)
        assert TOKEN not in str(raised.value)
        assert KEY not in str(raised.value)


@both
async def test_a_store_that_refuses_is_said_to(cluster: Cluster, kind: Kind, tmp_path: Path) -> None:
    """A refused write and a refused read are reported."""
    async with opened(cluster, kind, kind.wrong) as (_, archive, name):
        with pytest.raises(BackupError, match="the store refused"):
            await archive.put(a_snapshot(tmp_path / "snapshot.db"), name, NOW, "structure")
        with pytest.raises(BackupError, match="the store refused"):
            await archive.fetch(name, tmp_path / "back.db")


async def test_a_service_account_signs_for_itself(cluster: Cluster, tmp_path: Path) -> None:
    """The service account signs its token with the key of its Secret."""
    snapshot = a_snapshot(tmp_path / "snapshot.db")
    async with opened(cluster, GOOGLE, service_account()) as (_, archive, name):
        await archive.put(snapshot, series_name(name, snapshot.revision, NOW), NOW, "structure")
        assert [each.sha256 for each in await archive.series(name)] == [snapshot.sha256]


GCS = BackupDestination(gcs=GcsSource(path="bucket/a", gcp_secret="keys"))
ABS = BackupDestination(abs=AbsSource(path="bucket/a", abs_secret="keys"))


@pytest.mark.parametrize(
    ("place", "given", "message"),
    [
        (GCS, None, "Secret keys does not exist"),
        (GCS, secret("keys", other="x"), "neither `access-token` nor"),
        (GCS, Secret(name="keys", data={"credentials.json": b"{"}), "neither `access-token` nor"),
        (
            GCS,
            Secret(name="keys", data={"credentials.json": b'{"client_email":"a","private_key":"b"}'}),
            "cannot be opened",
        ),
        (ABS, secret("keys", storage_account=ACCOUNT), "no `storage-key`"),
        (ABS, secret("keys", storage_account=ACCOUNT, storage_key="?"), "cannot be opened"),
        (ABS, secret("keys", storage_account=ACCOUNT, storage_key=KEY, cloud="Moon"), "AzureChinaCloud"),
        (ABS, Secret(name="keys", data={"storage-account": b"\xff"}), "is not UTF-8 text"),
    ],
)
async def test_a_secret_without_keys_is_named(
    cluster: Cluster, place: BackupDestination, given: Secret | None, message: str
) -> None:
    """The error names the field of the Secret, and not its value."""
    if given is not None:
        await cluster.create(given)
    with pytest.raises(DestinationError, match=message) as raised:
        await StoreOpener().open(place, cluster.client, "default")
    assert KEY not in str(raised.value)


def test_another_object_of_a_place_is_in_the_same_store() -> None:
    """The other object is in the same bucket, with the same Secret."""
    place = BackupDestination(s3=S3Source(path="bucket/some/etcd.db", aws_secret="aws", endpoint="http://store"))
    other = with_object(place, "else/where")
    assert other == BackupDestination(s3=S3Source(path="bucket/else/where", aws_secret="aws", endpoint="http://store"))
    claim = BackupDestination(pvc=PvcSource(claim_name="backups", path="some/etcd.db"))
    assert with_object(claim, "else/where") == BackupDestination(pvc=PvcSource(claim_name="backups", path="else/where"))
    assert (object_of(claim), path_of(claim)) == ("some/etcd.db", "backups/some/etcd.db")
