"""Backups that cannot be made are said not to be, whatever the reason; and whose they are is known."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest
from obstore.store import MemoryStore

from etcd_operator.backup import BackupMetrics, BackupPolicy, BackupReconciler, EtcdBackup, EtcdBackupSpec, LocalSource
from etcd_operator.backup.snapshot_store import BackupError, Bucket
from etcd_operator.backup.snapshots import SnapshotVerifier, take
from etcd_operator.connector import ConnectedEtcd
from navarch import Context, Retry
from navarch.errors import DeadlineError, EtcdError, Forbidden
from navarch.etcd.messages import Header, MemberStatus
from snapshot_files import a_snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWN, OTHER = "http://own:2379", "http://other:2379"


async def test_a_backup_that_kubernetes_refuses_is_not_said_to_be_well() -> None:
    """The operator may not read its Secret any more: the condition of the last one that worked would stay for ever."""
    stores = Mock(tidy=AsyncMock(), opened=Mock(side_effect=Forbidden("no Secrets", code=HTTPStatus.FORBIDDEN)))
    policy = BackupPolicy(schedule="@hourly")
    spec = EtcdBackupSpec(cluster_name="c", local=LocalSource(path="a/b"), backup_policy=policy)
    backup = EtcdBackup(name="nightly", spec=spec)
    backup.status.succeeded, backup.status.last_success_date = True, datetime(2025, 1, 1, tzinfo=UTC)
    ctx = cast(Context, SimpleNamespace(now=lambda: NOW, get=AsyncMock(return_value=None), event=Mock()))
    with pytest.raises(Retry):
        await BackupReconciler(stores, Mock(), Mock(), AsyncMock(), BackupMetrics()).reconcile(backup, ctx)
    ready = backup.status.condition("BackupReady")
    assert ready is not None
    assert (ready.status, backup.status.succeeded) == ("False", False)
    assert "no Secrets" in ready.message


async def test_a_backup_counts_though_nobody_says_which_old_ones_are_needed(tmp_path: Path) -> None:
    """The server does not answer for a moment: it would be made again, and again, beside those that stay."""
    store = Bucket(MemoryStore())
    opened = AsyncMock(
        __aenter__=AsyncMock(return_value=(store, "some/etcd.db")), __aexit__=AsyncMock(return_value=None)
    )
    stores = Mock(tidy=AsyncMock(), opened=Mock(return_value=opened))
    etcd = members(a_snapshot(tmp_path / "own.db").path.read_bytes(), leader=1, own=0xA)
    reached = AsyncMock(
        __aenter__=AsyncMock(return_value=ConnectedEtcd(etcd, (OWN,))), __aexit__=AsyncMock(return_value=None)
    )
    spec = EtcdBackupSpec(etcd_endpoints=[OWN], backup_policy=BackupPolicy(backup_interval_in_second=60, max_backups=1))
    backup = EtcdBackup(name="often", spec=spec)
    ctx = cast(Context, SimpleNamespace(now=lambda: NOW, event=Mock()))
    silent = AsyncMock(side_effect=DeadlineError("no answer"))
    reach = Mock(endpoints=Mock(return_value=reached))
    await BackupReconciler(stores, reach, SnapshotVerifier(None), silent, BackupMetrics()).reconcile(backup, ctx)
    assert (backup.status.succeeded, backup.status.kept) == (True, 1)


def members(snapshot: bytes, leader: int = 0, **clusters: int) -> Any:
    """Who answers at which address, and of which cluster; the later ones know more. All know the same leader, or none."""

    async def status(endpoint: str) -> MemberStatus:
        name = endpoint.removeprefix("http://").removesuffix(":2379")
        if name not in clusters:
            raise EtcdError("it is silent")
        header = Header(cluster_id=clusters[name], revision=7 + list(clusters).index(name))
        return MemberStatus(header=header, version="3.5.1", leader=leader)

    async def pieces(endpoint: str) -> Any:
        taken.append(endpoint)
        yield snapshot

    taken: list[str] = []
    return SimpleNamespace(maintenance=SimpleNamespace(status=status, snapshot=pieces), taken=taken)


async def test_a_member_of_another_cluster_gives_no_snapshot(tmp_path: Path) -> None:
    """It has the address of a pod that is gone, and knows more: a backup, or a safety copy, of it would be of no use."""
    snapshot = a_snapshot(tmp_path / "theirs.db").path.read_bytes()
    etcd = members(snapshot, own=0xA, other=0xB)
    taken = await take(ConnectedEtcd(etcd, (OWN, OTHER), "a"), tmp_path / "snapshot.db")
    assert (etcd.taken, taken.cluster) == ([OWN], "a")
    with pytest.raises(BackupError, match="belong to etcd cluster b, expected a"):
        await take(ConnectedEtcd(members(snapshot, other=0xB), (OWN, OTHER), "a"), tmp_path / "snapshot.db")
    await take(ConnectedEtcd(etcd, (OWN, OTHER)), tmp_path / "snapshot.db")
    assert etcd.taken == [OWN, OTHER]


async def test_a_member_that_is_cut_off_gives_no_snapshot_while_the_others_serve(tmp_path: Path) -> None:
    """What they have acknowledged since is not in it. Where nobody serves, it is the best that there is."""
    snapshot = a_snapshot(tmp_path / "old.db").path.read_bytes()
    both, ready = (OWN, OTHER), frozenset({OTHER})
    with pytest.raises(BackupError, match="may have newer data"):
        await take(ConnectedEtcd(members(snapshot, own=0xA), both, "a", ready), tmp_path / "snapshot.db")
    for reached in (
        ConnectedEtcd(members(snapshot, own=0xA), both, "a"),
        ConnectedEtcd(members(snapshot, leader=1, own=0xA), both, "a", ready),
    ):
        assert (await take(reached, tmp_path / "snapshot.db")).revision == 7
