"""Makes the backups that are due."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Final

from prometheus_client import Gauge

from etcd_operator.backup.archive import Archive, Manifest
from etcd_operator.backup.faults import BackupError
from etcd_operator.backup.kinds import EtcdBackup
from etcd_operator.backup.snapshots import take
from etcd_operator.backup.stores import Stores
from etcd_operator.manifests import CLIENT_PORT
from navarch import Condition, Context, Result, Retry
from navarch.client import Client
from navarch.k8s.core.v1 import Pod

__all__ = ["BackupReconciler", "endpoints_of"]

_SECONDS: Final = 60
_LAST: Final = Gauge(
    "etcd_operator_backup_last_success_timestamp_seconds",
    "When the newest snapshot was taken that counts.",
    ("namespace", "name"),
)


class BackupReconciler:
    """Brings `EtcdBackup`s about: once for each spec, or again and again."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def reconcile(self, backup: EtcdBackup, ctx: Context) -> Result | None:
        """Makes one if it is due. What does not work is said, and tried again with growing delays."""
        wait = _due_in(backup, ctx)
        if wait is None or wait > 0:
            return Result(after=wait) if wait else None
        try:
            async with asyncio.timeout(backup.spec.backup_policy.timeout_in_second or _SECONDS):
                made, kept = await self._make(backup, ctx)
        except TimeoutError:
            raise _failed(backup, ctx, "it took longer than backupPolicy.timeoutInSecond allows") from None
        except BackupError as error:
            raise _failed(backup, ctx, str(error)) from None
        _tell(backup, ctx, made, kept)
        interval = backup.spec.backup_policy.backup_interval_in_second
        return Result(after=interval) if interval else None

    async def _make(self, backup: EtcdBackup, ctx: Context) -> tuple[Manifest, int]:
        policy, taken = backup.spec.backup_policy, ctx.now()
        store, name = await self._stores.open(backup.spec, ctx.client, backup.namespace)
        archive = Archive(store)
        endpoints = backup.spec.etcd_endpoints or await endpoints_of(
            ctx.client, backup.spec.cluster_name, backup.namespace
        )
        with tempfile.TemporaryDirectory(prefix="etcd-backup-") as folder:
            snapshot = await take(endpoints, Path(folder) / "snapshot.db")
            if not policy.backup_interval_in_second:
                return await archive.put(snapshot, name, taken), 1
            made = await archive.put(snapshot, f"{name}_v{snapshot.revision}_{taken:%Y%m%dT%H%M%S.%fZ}", taken)
        oldest = timedelta(seconds=policy.max_age_in_second)
        return made, len(await archive.thin(f"{name}_v", taken, most=policy.max_backups, oldest=oldest))


async def endpoints_of(client: Client, cluster: str, namespace: str) -> list[str]:
    """Where the members of an `EtcdCluster` listen that have an address."""
    pods = await client.list(Pod, namespace=namespace, labels={"app": "etcd", "etcd_cluster": cluster})
    return [f"http://{pod.status.pod_ip}:{CLIENT_PORT}" for pod in pods if pod.status.pod_ip]


def _due_in(backup: EtcdBackup, ctx: Context) -> float | None:
    """In how many seconds the next one is due; None if never."""
    status, interval = backup.status, backup.spec.backup_policy.backup_interval_in_second
    if status.last_success_date is None or not status.succeeded:
        return 0.0
    if status.observed_generation != backup.metadata.generation:
        return 0.0
    if not interval:
        return None
    return max(0.0, interval - (ctx.now() - status.last_success_date).total_seconds())


def _failed(backup: EtcdBackup, ctx: Context, words: str) -> Retry:
    backup.status.succeeded, backup.status.reason = False, words
    _condition(backup, ctx, holds=False, reason="Failed", words=words)
    ctx.event("BackupFailed", words, type="Warning")
    return Retry(f"no backup: {words}")


def _tell(backup: EtcdBackup, ctx: Context, made: Manifest, kept: int) -> None:
    status = backup.status
    status.succeeded, status.reason = True, ""
    status.etcd_revision, status.etcd_version = made.revision, made.version
    status.last_success_date, status.object = made.taken, made.object
    status.size, status.sha256, status.kept = made.size, made.sha256, kept
    words = f"revision {made.revision} is in {made.object}, {made.size} bytes, read back"
    _condition(backup, ctx, holds=True, reason="Verified", words=words)
    _LAST.labels(backup.namespace, backup.name).set(made.taken.timestamp())
    ctx.event("BackedUp", words)


def _condition(backup: EtcdBackup, ctx: Context, *, holds: bool, reason: str, words: str) -> None:
    backup.status.set_condition(
        Condition(
            type="BackupReady",
            status="True" if holds else "False",
            reason=reason,
            message=words,
            observed_generation=backup.metadata.generation,
            last_transition_time=ctx.now(),
        )
    )
