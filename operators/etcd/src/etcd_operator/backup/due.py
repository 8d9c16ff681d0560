"""When a backup is due: once for each spec, after an interval, or by the hours of a line of cron."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from etcd_operator.backup.faults import PlaceError
from etcd_operator.backup.kinds import EtcdBackup
from etcd_operator.places import BackupPolicy, path_of
from navarch.api.schedules import schedule_of, zone_of
from navarch.errors import InvalidValueError

__all__ = ["due_at", "following"]

_SKEW: Final = timedelta(minutes=1)
"""So far apart the clocks of two machines may be."""


def due_at(backup: EtcdBackup, now: datetime) -> datetime | None:
    """When the next one is due; None if never. Raises `PlaceError` for a schedule that cannot be read.

    What was taken in the future was taken by a clock that was wrong: none would be made until it was right.
    """
    status, policy = backup.status, backup.spec.backup_policy
    if policy.is_repeated and status.last_success_date is not None and status.last_success_date > now + _SKEW:
        return now
    if policy.schedule:
        since = status.last_success_date or backup.metadata.creation_timestamp or now
        moved = status.path not in {"", path_of(backup.spec)}
        return now if status.reason or moved else following(policy, since)
    if status.last_success_date is None or not status.succeeded:
        return now
    if status.observed_generation != backup.metadata.generation:
        return now
    return following(policy, status.last_success_date)


def following(policy: BackupPolicy, last: datetime) -> datetime | None:
    """When the one after that is due; None if there is none."""
    if policy.schedule:
        try:
            return schedule_of(policy.schedule, zone_of(policy.time_zone)).after(last)
        except InvalidValueError as error:
            raise PlaceError(f"backupPolicy.schedule cannot be read: {error}") from None
    return last + policy.interval if policy.interval else None
