"""When each backup last worked, as a number to be alerted by."""

from __future__ import annotations

from typing import Final

from prometheus_client import Gauge

from etcd_operator.backup.kinds import EtcdBackup
from navarch import ALL, Client

__all__ = ["BackupTimes"]

_LAST: Final = Gauge(
    "etcd_operator_backup_last_success_timestamp_seconds",
    "When the newest snapshot was taken that counts.",
    ("namespace", "name"),
)
_TIDY_SECONDS: Final = 300.0


class BackupTimes:
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
