"""When backups are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from etcd_operator.backup import BackupPolicy, EtcdBackup, EtcdBackupSpec, LocalSource
from etcd_operator.backup.schedule import due_at
from etcd_operator.backup.snapshot_store import BackupError

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def backup(**policy: Any) -> EtcdBackup:
    """Made at noon."""
    spec = EtcdBackupSpec(cluster_name="c", local=LocalSource(path="a/b"), backup_policy=BackupPolicy(**policy))
    made = EtcdBackup(name="b", spec=spec)
    made.metadata.creation_timestamp, made.metadata.generation = NOON, 1
    return made


def succeeded(made: EtcdBackup, when: datetime) -> EtcdBackup:
    made.status.succeeded, made.status.last_success_date, made.status.observed_generation = True, when, 1
    made.status.path = "a/b"
    return made


def test_a_backup_by_schedule_waits_for_its_hour_in_its_time_zone() -> None:
    """The first hour counts from its creation, the next from its last success."""
    made = backup(schedule="0 2 * * *", time_zone="Europe/Berlin")
    assert due_at(made, NOON) == datetime(2026, 7, 2, 0, tzinfo=UTC)
    winter = datetime(2026, 12, 1, 5, tzinfo=UTC)
    assert due_at(succeeded(made, winter), winter) == datetime(2026, 12, 2, 1, tzinfo=UTC)


def test_an_hour_that_was_missed_is_made_up_for_once() -> None:
    """A backup that fell due while no operator ran is taken once."""
    made = succeeded(backup(schedule="@hourly"), NOON)
    later = NOON + timedelta(days=3)
    assert due_at(made, later) == NOON + timedelta(hours=1)
    assert due_at(succeeded(made, later), later) == later + timedelta(hours=1)


@pytest.mark.parametrize("policy", [{"schedule": "@hourly"}, {"backup_interval_in_second": 3600}])
def test_a_clock_that_was_ahead_does_not_put_backups_off(policy: dict[str, Any]) -> None:
    """The last one is from a day that has not come yet; two clocks may differ a little."""
    made = backup(**policy)
    assert due_at(succeeded(made, NOON + timedelta(days=400)), NOON) == NOON
    assert due_at(succeeded(made, NOON + timedelta(seconds=2)), NOON) != NOON


def test_a_backup_that_failed_is_due_at_once() -> None:
    """A failed backup is retried at once, and not at the next hour."""
    made = succeeded(backup(schedule="@daily"), NOON)
    made.status.succeeded, made.status.reason = False, "the store refused"
    assert due_at(made, NOON + timedelta(minutes=1)) == NOON + timedelta(minutes=1)


def test_a_backup_that_is_to_go_elsewhere_is_due_at_once() -> None:
    """A changed destination is tried at once, so that its errors are known."""
    made = succeeded(backup(schedule="@daily"), NOON)
    made.spec.local = LocalSource(path="c/d")
    assert due_at(made, NOON) == NOON


def test_one_backup_is_made_for_each_spec_and_more_by_interval() -> None:
    """Without a schedule, each spec has one backup, or one per interval."""
    assert due_at(succeeded(backup(), NOON), NOON) is None
    assert due_at(backup(), NOON) == NOON
    assert due_at(succeeded(backup(backup_interval_in_second=60), NOON), NOON) == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    "policy", [{"schedule": "61 * * * *"}, {"schedule": "*/0 * * * *"}, {"schedule": "@daily", "time_zone": "Moon/Sea"}]
)
def test_a_schedule_that_cannot_be_read_is_said_to(policy: dict[str, str]) -> None:
    """The error names the field."""
    with pytest.raises(BackupError, match=r"backupPolicy\.schedule is invalid"):
        due_at(backup(**policy), NOON)


def test_a_schedule_that_never_comes_is_never_due() -> None:
    """A schedule for the thirtieth of February is never due."""
    assert due_at(backup(schedule="0 0 30 2 *"), NOON) is None
