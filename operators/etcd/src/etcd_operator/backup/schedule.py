"""When backups are due, how many run at once per namespace, and the metric of their last success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import Gauge

from etcd_operator.backup.kinds import EtcdBackup
from etcd_operator.backup.snapshot_store import DestinationError
from etcd_operator.destinations import BackupPolicy, path_of
from navarch import ALL, Client
from navarch.api.schedules import schedule_of, zone_of
from navarch.errors import InvalidValueError

WORKERS: Final = 32
"""The workers of the EtcdBackup controller, and of the EtcdRestore controller."""
_MOST: Final = 4


class NamespaceLimit:
    """Limits the running backups or restores per namespace. It never blocks: without a slot the caller requeues."""

    def __init__(self) -> None:
        self._busy: Counter[str] = Counter()

    @contextmanager
    def turn(self, namespace: str) -> Iterator[str]:
        """Yields an empty string if there is a slot for the block; otherwise the reason."""
        if self._busy[namespace] >= _MOST:
            yield f"{_MOST} others of this namespace are running"
            return
        self._busy[namespace] += 1
        try:
            yield ""
        finally:
            self._busy[namespace] -= 1
            self._busy += Counter()  # drops those at zero


_SKEW: Final = timedelta(minutes=1)
"""The tolerated difference between the clocks of two machines."""


def due_at(backup: EtcdBackup, now: datetime) -> datetime | None:
    """Returns when the next backup is due; None if never. Raises `DestinationError` for an invalid schedule.

    A last success in the future comes from a wrong clock; the backup is then due at once.
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
    """Returns when the backup after `last` is due; None if there is none."""
    if policy.schedule:
        try:
            return schedule_of(policy.schedule, zone_of(policy.time_zone)).after(last)
        except InvalidValueError as error:
            raise DestinationError(f"backupPolicy.schedule is invalid: {error}") from None
    return last + policy.interval if policy.interval else None


_LAST: Final = Gauge(
    "etcd_operator_backup_last_success_timestamp_seconds",
    "When the newest snapshot was taken that counts.",
    ("namespace", "name"),
)
_TIDY_SECONDS: Final = 300.0


class BackupMetrics:
    """Exports the time of the last success of each EtcdBackup in these namespaces, or in all."""

    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self._namespaces = namespaces or (ALL,)
        self._told: set[tuple[str, str]] = set()

    def record(self, backup: EtcdBackup) -> None:
        """Sets the time of the last success, if there is one."""
        if backup.status.last_success_date is not None:
            self._told.add((backup.namespace, backup.name))
            _LAST.labels(backup.namespace, backup.name).set(backup.status.last_success_date.timestamp())

    async def follow(self, client: Client) -> None:
        """Exports backups from before this process, and removes deleted ones, until it is cancelled."""
        while True:
            found = [
                each for namespace in self._namespaces for each in await client.list(EtcdBackup, namespace=namespace)
            ]
            for backup in found:
                self.record(backup)
            self._forget(self._told - {(each.namespace, each.name) for each in found})
            await client.clock.sleep(_TIDY_SECONDS)

    def _forget(self, gone: set[tuple[str, str]]) -> None:
        for labels in gone:
            _LAST.remove(*labels)
        self._told -= gone
