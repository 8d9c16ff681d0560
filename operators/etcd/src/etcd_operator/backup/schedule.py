"""When each backup last worked, as a number to be alerted by."""

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
"""Of backups, and of restores."""
_MOST: Final = 4


class NamespaceLimit:
    """Counts those that are at work. Nobody waits inside: who has no turn gives his worker back, and comes again."""

    def __init__(self) -> None:
        self._busy: Counter[str] = Counter()

    @contextmanager
    def turn(self, namespace: str) -> Iterator[str]:
        """Empty if there is a turn while the block lasts; else why not."""
        if self._busy[namespace] >= _MOST:
            yield f"{_MOST} others of this namespace are at work and go first"
            return
        self._busy[namespace] += 1
        try:
            yield ""
        finally:
            self._busy[namespace] -= 1
            self._busy += Counter()  # drops those at zero


_SKEW: Final = timedelta(minutes=1)
"""So far apart the clocks of two machines may be."""


def due_at(backup: EtcdBackup, now: datetime) -> datetime | None:
    """When the next one is due; None if never. Raises `DestinationError` for a schedule that cannot be read.

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
            raise DestinationError(f"backupPolicy.schedule cannot be read: {error}") from None
    return last + policy.interval if policy.interval else None


_LAST: Final = Gauge(
    "etcd_operator_backup_last_success_timestamp_seconds",
    "When the newest snapshot was taken that counts.",
    ("namespace", "name"),
)
_TIDY_SECONDS: Final = 300.0


class BackupMetrics:
    """The times of the `EtcdBackup`s in these namespaces, or in all, for as long as they are there."""

    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self._namespaces = namespaces or (ALL,)
        self._told: set[tuple[str, str]] = set()

    def tell(self, backup: EtcdBackup) -> None:
        """When the newest one of this backup was taken, if there is one."""
        if backup.status.last_success_date is not None:
            self._told.add((backup.namespace, backup.name))
            _LAST.labels(backup.namespace, backup.name).set(backup.status.last_success_date.timestamp())

    async def follow(self, client: Client) -> None:
        """Tells of those from before this process, and forgets those that are gone; until it is cancelled."""
        while True:
            found = [
                each for namespace in self._namespaces for each in await client.list(EtcdBackup, namespace=namespace)
            ]
            for backup in found:
                self.tell(backup)
            self._forget(self._told - {(each.namespace, each.name) for each in found})
            await client.clock.sleep(_TIDY_SECONDS)

    def _forget(self, gone: set[tuple[str, str]]) -> None:
        for labels in gone:
            _LAST.remove(*labels)
        self._told -= gone
