"""The number by which somebody is woken when backups stop."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock

import pytest
from prometheus_client import REGISTRY

from etcd_operator.backup import BackupMetrics, EtcdBackup
from navarch import ALL, Client

TAKEN = datetime(2026, 1, 1, tzinfo=UTC)


class EndError(Exception):
    """Nothing more happens."""


def backup(name: str, taken: datetime | None = TAKEN) -> EtcdBackup:
    made = EtcdBackup(name=name, namespace="timed")
    made.status.last_success_date = taken
    return made


def told(name: str) -> float | None:
    labels = {"namespace": "timed", "name": name}
    return REGISTRY.get_sample_value("etcd_operator_backup_last_success_timestamp_seconds", labels)


async def test_time_of_a_backup_is_told_after_a_restart_and_until_it_is_deleted() -> None:
    """Else an alarm would be silent until the next one works, or go on for a backup that nobody wants any more."""
    seen: list[tuple[float | None, ...]] = []

    async def sleep(seconds: float) -> None:
        assert seconds > 0
        seen.append((told("stays"), told("goes"), told("none yet")))
        if len(seen) == 2:
            raise EndError

    answers = [[backup("stays"), backup("goes"), backup("none yet", None)], [backup("stays")]]
    listed = AsyncMock(side_effect=answers)
    client = cast(Client, SimpleNamespace(list=listed, clock=SimpleNamespace(sleep=sleep)))
    with pytest.raises(EndError):
        await BackupMetrics().follow(client)
    assert seen == [(TAKEN.timestamp(), TAKEN.timestamp(), None), (TAKEN.timestamp(), None, None)]
    listed.assert_awaited_with(EtcdBackup, namespace=ALL)


async def test_only_the_namespaces_of_the_operator_are_asked() -> None:
    """The metrics read only the operator's namespaces, because it has no permission in others."""
    listed = AsyncMock(return_value=[])
    clock = SimpleNamespace(sleep=AsyncMock(side_effect=EndError))
    with pytest.raises(EndError):
        await BackupMetrics(("one", "two")).follow(cast(Client, SimpleNamespace(list=listed, clock=clock)))
    assert [call.kwargs["namespace"] for call in listed.await_args_list] == ["one", "two"]
