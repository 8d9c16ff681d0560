"""Reconciles EtcdBackups: takes the snapshots that are due."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Final

from etcd_operator.backup.archive import Archive, Manifest, series_name
from etcd_operator.backup.claim_mounts import StoreRequest
from etcd_operator.backup.kinds import EtcdBackup
from etcd_operator.backup.schedule import BackupMetrics, NamespaceLimit, due_at, following
from etcd_operator.backup.snapshot_store import LONGEST_REASON, BackupError
from etcd_operator.backup.snapshots import MAX_BYTES, Snapshot, SnapshotVerifier, take
from etcd_operator.backup.store_opener import StoreOpener
from etcd_operator.connector import ConnectedEtcd, EtcdConnector
from etcd_operator.destinations import path_of
from etcd_operator.kinds import EtcdCluster, PodPolicy
from etcd_operator.tls import CredentialsError
from navarch import Condition, Context, Result, Retry
from navarch.errors import ApiError, Forbidden, InvalidValueError, TransportError

_SECONDS: Final = 60
_CLAIM_SECONDS: Final = 300
"""The default timeout with a claim: its volume may have to be provisioned and attached."""
_LONGEST_SECONDS: Final = 4 * 3600
"""The upper bound of one backup, whatever its own timeout is."""
_TURN_SECONDS: Final = 5.0


Awaited = Callable[[str, Context], Awaitable[frozenset[str]]]
"""Returns the names of snapshots that restores of a namespace still need, in any store."""


class BackupReconciler:
    """Reconciles EtcdBackups: one snapshot per spec, or a series. Retention spares `awaited` snapshots."""

    def __init__(
        self,
        stores: StoreOpener,
        reach: EtcdConnector,
        trial: SnapshotVerifier,
        awaited: Awaited,
        times: BackupMetrics,
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._limit = NamespaceLimit()
        self._max_bytes = max_bytes
        self._stores = stores
        self._reach = reach
        self._trial = trial
        self._awaited = awaited
        self._times = times

    async def reconcile(self, backup: EtcdBackup, ctx: Context) -> Result | None:
        """Takes a snapshot if one is due. A failure goes into the status, and is retried with backoff."""
        await self._stores.tidy(backup, ctx)
        try:
            due = due_at(backup, ctx.now())
            if due is None or due > ctx.now():
                return _hear_first(backup, ctx, due)
            with self._limit.turn(backup.namespace) as why_not:
                if why_not:
                    raise _waiting(backup, ctx, why_not)
                made, kept = await self._make(backup, ctx)
        except TimeoutError:
            raise _failed(backup, ctx, "the backup exceeded backupPolicy.timeoutInSecond") from None
        except (BackupError, InvalidValueError) as error:  # an invalid object name in the spec
            raise _failed(backup, ctx, str(error)) from None
        except Forbidden as error:
            raise _failed(backup, ctx, f"the API server refused: {error}") from None
        following_one = following(backup.spec.backup_policy, made.taken)
        _tell(backup, ctx, made, kept, following_one)
        self._times.record(backup)
        return _again(following_one, ctx)

    async def _make(self, backup: EtcdBackup, ctx: Context) -> tuple[Manifest, int]:
        name = backup.spec.cluster_name
        cluster = await ctx.get(EtcdCluster, name) if name else None
        visit = _visit(backup, cluster, ctx)
        async with self._stores.opened(backup.spec, visit) as (store, name), asyncio.timeout(visit.seconds):
            return await self._put_away(backup, cluster, ctx, Archive(store, max_bytes=self._max_bytes), name)

    async def _put_away(
        self, backup: EtcdBackup, cluster: EtcdCluster | None, ctx: Context, archive: Archive, name: str
    ) -> tuple[Manifest, int]:
        taken = ctx.now()
        with tempfile.TemporaryDirectory(prefix="etcd-backup-") as folder:
            snapshot = await self._take(backup, cluster, ctx, Path(folder) / "snapshot.db")
            verified = await self._trial.verified(snapshot)
            if not backup.spec.backup_policy.is_repeated:
                return await archive.put(snapshot, name, taken, verified), 1
            await archive.tidy(name)
            own = series_name(name, snapshot.revision, taken)
            made = await archive.put(snapshot, own, taken, verified)
        return made, await self._apply_retention(archive, name, backup, ctx)

    async def _apply_retention(self, archive: Archive, name: str, backup: EtcdBackup, ctx: Context) -> int:
        """Applies retention; returns how many snapshots remain. A failure does not fail the new backup."""
        policy = backup.spec.backup_policy
        try:
            spared = await self._awaited(backup.namespace, ctx)
            kept = await archive.thin(name, ctx.now(), most=policy.max_backups, oldest=policy.max_age, spared=spared)
        except (BackupError, ApiError, TransportError) as error:
            ctx.event("OldBackupsStay", str(error), type="Warning")
            return backup.status.kept + 1
        return len(kept)

    async def _take(self, backup: EtcdBackup, cluster: EtcdCluster | None, ctx: Context, path: Path) -> Snapshot:
        try:
            async with self._reached(backup, cluster, ctx) as reached:
                return await take(reached, path, max_bytes=self._max_bytes)
        except CredentialsError as fault:
            raise BackupError(str(fault)) from None

    def _reached(
        self, backup: EtcdBackup, cluster: EtcdCluster | None, ctx: Context
    ) -> AbstractAsyncContextManager[ConnectedEtcd]:
        spec = backup.spec
        if spec.etcd_endpoints:
            return self._reach.endpoints(spec.etcd_endpoints, spec.client_tls_secret, ctx)
        if cluster is None:
            raise BackupError(f"EtcdCluster {spec.cluster_name} does not exist")
        return self._reach.cluster(cluster, ctx)


def _visit(backup: EtcdBackup, cluster: EtcdCluster | None, ctx: Context) -> StoreRequest:
    """Returns the request for the store; opening a claim may take as long as the backup itself."""
    usual = _CLAIM_SECONDS if backup.spec.pvc is not None else _SECONDS
    seconds = min(backup.spec.backup_policy.timeout_in_second or usual, _LONGEST_SECONDS)
    policy = (cluster.spec.pod if cluster is not None else None) or PodPolicy()
    longest = 2 * seconds + _SECONDS
    return StoreRequest(ctx=ctx, owner=backup, policy=policy, seconds=seconds, longest=longest, makes_claims=True)


def _hear_first(backup: EtcdBackup, ctx: Context, due: datetime | None) -> Result | None:
    """Requeues until the next backup; before the first one, the condition tells when it is due."""
    if backup.status.last_success_date is None:
        message = f"the first backup is due at {due:%Y-%m-%d %H:%M:%SZ}" if due else "the schedule never matches"
        _condition(backup, ctx, holds=False, reason="NotDueYet", message=message)
    return _again(due, ctx)


def _again(due: datetime | None, ctx: Context) -> Result | None:
    return Result(after=max(0.0, (due - ctx.now()).total_seconds())) if due else None


def _waiting(backup: EtcdBackup, ctx: Context, message: str) -> Retry:
    """Reports that the backup waits for a slot; an earlier failure stays in the status, because it matters more."""
    if not backup.status.reason:
        backup.status.succeeded, backup.status.reason = False, message
        _condition(backup, ctx, holds=False, reason="Waiting", message=message)
    return Retry(f"the backup waits: {message}", after=_TURN_SECONDS)


def _failed(backup: EtcdBackup, ctx: Context, message: str) -> Retry:
    """Reports a failure; the message is cut, because it may quote a long field of the spec."""
    message = message[:LONGEST_REASON]
    backup.status.succeeded, backup.status.reason = False, message
    _condition(backup, ctx, holds=False, reason="Failed", message=message)
    ctx.event("BackupFailed", message, type="Warning")
    return Retry(f"the backup failed: {message}")


def _tell(backup: EtcdBackup, ctx: Context, made: Manifest, kept: int, following_one: datetime | None) -> None:
    status = backup.status
    status.succeeded, status.reason = True, ""
    status.etcd_revision, status.etcd_version = made.revision, made.version
    status.last_success_date, status.object, status.path = made.taken, made.object, path_of(backup.spec)
    status.size, status.sha256, status.kept = made.size, made.sha256, kept
    status.verified = made.verified
    tried = "verified by a restore" if made.verified == "restored" else "verified by its structure"
    next_one = f"; the next backup is due at {following_one:%Y-%m-%d %H:%M:%SZ}" if following_one else ""
    message = f"stored revision {made.revision} in {made.object}, {made.size} bytes, {tried}{next_one}"
    _condition(backup, ctx, holds=True, reason="Verified", message=message)
    ctx.event("BackedUp", message)


def _condition(backup: EtcdBackup, ctx: Context, *, holds: bool, reason: str, message: str) -> None:
    backup.status.set_condition(
        Condition(
            type="BackupReady",
            status="True" if holds else "False",
            reason=reason,
            message=message,
            observed_generation=backup.metadata.generation,
            last_transition_time=ctx.now(),
        )
    )
