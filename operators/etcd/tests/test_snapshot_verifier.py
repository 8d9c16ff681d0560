"""Snapshots are tried with etcd's own tool, where it can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from etcd_operator.backup import SnapshotVerifier
from etcd_operator.backup.snapshot_store import DamagedSnapshotError
from snapshot_files import a_snapshot


def etcdutl(folder: Path, version: str, restore: str) -> Path:
    """A program that says that version, and does that when it is to restore `$3` into `${4#--data-dir=}`."""
    path = folder / "etcdutl"
    path.write_text(f"#!/bin/sh\nif [ $1 = version ]; then echo etcdutl version: {version}; exit; fi\n{restore}\n")
    path.chmod(0o755)
    return path


RESTORES = 'mkdir -p "${4#--data-dir=}/member/snap" && cp "$3" "${4#--data-dir=}/member/snap/db"'


async def test_a_snapshot_that_becomes_data_is_restored(tmp_path: Path) -> None:
    """The verification restores the snapshot, and leaves no files."""
    snapshot = a_snapshot(tmp_path / "snapshot.db")
    assert await SnapshotVerifier(etcdutl(tmp_path, "3.5.1", RESTORES)).verified(snapshot) == "restored"
    assert not snapshot.path.with_suffix(".trial").exists()


@pytest.mark.parametrize("restore", ["exit 1", "exit 0"])
async def test_a_snapshot_that_does_not_become_data_is_damaged(tmp_path: Path, restore: str) -> None:
    """A snapshot whose restored data ends too early is refused, even if etcdutl reports success."""
    trial = SnapshotVerifier(etcdutl(tmp_path, "3.6.0", restore))
    with pytest.raises(DamagedSnapshotError, match="cannot be restored"):
        await trial.verified(a_snapshot(tmp_path / "snapshot.db"))


async def test_a_tool_that_cannot_know_better_is_not_asked(tmp_path: Path) -> None:
    """None at all, one that does not run, and one that is older than the etcd of the snapshot."""
    snapshot = a_snapshot(tmp_path / "snapshot.db")
    for program in (None, tmp_path / "nowhere", etcdutl(tmp_path, "3.4.9", "exit 1")):
        assert await SnapshotVerifier(program).verified(snapshot) == "structure"
