"""Reconciles EtcdRestores phase by phase. The status records a phase before it starts, and each phase can be repeated."""

from __future__ import annotations

import tempfile
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Final

from etcd_operator.backup.archive import Archive
from etcd_operator.backup.claim_mounts import StoreRequest
from etcd_operator.backup.schedule import NamespaceLimit
from etcd_operator.backup.snapshot_store import LONGEST_REASON, BackupError, SnapshotStore
from etcd_operator.backup.snapshots import MAX_BYTES, Snapshot, SnapshotVerifier, take
from etcd_operator.backup.store_opener import StoreOpener
from etcd_operator.connector import EtcdConnector
from etcd_operator.kinds import EtcdCluster, PodPolicy
from etcd_operator.restore.kinds import EtcdRestore, Phase
from etcd_operator.restore.lock import acquire, is_superseded, restores_ahead
from etcd_operator.restore.seed import (
    emptied,
    hand_over,
    is_gone,
    left_by_others,
    released,
    resume,
    seed_name,
    seeded,
    started,
)
from etcd_operator.tls import CredentialsError
from etcd_operator.versions import EtcdVersion
from navarch import Context, Result, Retry
from navarch.errors import Forbidden, InvalidValueError, NotFound

_AHEAD: Final = 1_000_000_000
"""The margin that etcd recommends."""


def unseen(now: datetime, *known: int) -> int:
    """Returns a revision above all that the cluster can have reached since the known ones.

    It is the time in microseconds: etcd makes less than a million writes a second, so a cluster that started from an
    earlier such revision is below it, even if it was deleted in between. If a clock was set back, the known revisions
    decide.

    >>> unseen(datetime.fromisoformat("2026-01-01T00:00:00Z"), 1234)
    1767225600000000
    >>> unseen(datetime.fromisoformat("2026-01-01T00:00:00Z"), 1234, 1767225600000000)
    1767226600000000
    """
    return max(int(now.timestamp() * 1_000_000), max(known) + _AHEAD)


_SOON: Final = 0.3
_TURN_SECONDS: Final = 5.0
_CLAIM_SECONDS: Final = 300.0
_CLAIM_LONGEST: Final = 4 * 3600.0


class RestoreReconciler:
    """Reconciles EtcdRestores. `image` contains Python, for the init containers of the first member."""

    def __init__(
        self,
        stores: StoreOpener,
        reach: EtcdConnector,
        trial: SnapshotVerifier,
        image: str,
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._limit = NamespaceLimit()
        self._max_bytes = max_bytes
        self._stores = stores
        self._reach = reach
        self._trial = trial
        self._image = image

    async def reconcile(self, restore: EtcdRestore, ctx: Context) -> Result | None:
        """Advances the restore by at most one phase. A failure goes into the status, and is retried."""
        await self._stores.tidy(restore, ctx)
        if restore.status.phase == "Done":
            return None
        try:
            with self._limit.turn(restore.namespace) as why_not:
                if why_not:
                    restore.status.reason = restore.status.reason or why_not
                    return Result(after=_TURN_SECONDS)
                await self._go_on(restore, await cluster_of(restore, ctx), ctx)
        except (BackupError, CredentialsError, InvalidValueError) as error:
            restore.status.reason = str(error)[:LONGEST_REASON]
            ctx.event("RestoreWaits", restore.status.reason, type="Warning")
            raise Retry(restore.status.reason) from None
        except Forbidden as error:
            restore.status.reason = f"the API server refused: {error}"
            raise Retry(restore.status.reason) from None
        return Result(after=_SOON)

    async def _go_on(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        match restore.status.phase:
            case "":
                await self._prepare(restore, cluster, ctx)
            case "Emptying":
                await self._empty(restore, cluster, ctx)
            case "Seeding":
                await self._seed(restore, cluster, ctx)
            case _:
                await self._join(restore, cluster, ctx)

    async def _prepare(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        """Verifies the snapshot and takes the safety copy; nothing of the cluster changes before that."""
        if others := await restores_ahead(restore, ctx):
            raise BackupError(
                f"waiting for EtcdRestore {others[0].name} of the same cluster; delete it to go on without it"
            )
        if strangers := await left_by_others(cluster, ctx):
            message = f"pods or claims of another cluster of this name exist: {', '.join(strangers)}"
            raise BackupError(f"{message}; if they are not being deleted, delete them")
        with tempfile.TemporaryDirectory(prefix="etcd-restore-") as folder:
            async with self._opened(restore, cluster, ctx) as (store, name):
                snapshot = await Archive(store, max_bytes=self._max_bytes).fetch(name, Path(folder) / "snapshot.db")
                await self._trial.verified(snapshot)
                _refuse_older(snapshot, cluster)
                now = await self._taken_now(restore, cluster, ctx, Path(folder) / "safety.db")
                restore.status.safety_copy = await self._safe(now, store, f"{name}.before-{restore.name}", ctx)
        restore.status.sha256, restore.status.etcd_revision = snapshot.sha256, snapshot.revision
        restore.status.next_revision = unseen(ctx.now(), snapshot.revision, now.revision if now else 0)
        restore.status.seed = await seed_name(cluster, ctx)
        _enter(
            restore,
            ctx,
            "Emptying",
            f"the snapshot is verified, revision {snapshot.revision}; the members are being stopped",
        )

    async def _empty(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        """Stops the members. If another restore acquired the cluster, this one starts over: its safety copy is outdated."""
        if not await acquire(cluster, restore, ctx):
            restore.status.phase, restore.status.reason = "", f"waiting for another restore of {cluster.name}"
        elif await emptied(cluster, ctx):
            _enter(restore, ctx, "Seeding", f"the members are stopped; {restore.status.seed} starts from the snapshot")

    def _opened(
        self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context
    ) -> AbstractAsyncContextManager[tuple[SnapshotStore, str]]:
        policy = cluster.spec.pod or PodPolicy()
        visit = StoreRequest(
            ctx=ctx,
            owner=restore,
            policy=policy,
            seconds=_CLAIM_SECONDS,
            longest=_CLAIM_LONGEST,
            makes_claims=False,
        )
        return self._stores.opened(restore.spec, visit)

    async def _taken_now(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context, path: Path) -> Snapshot | None:
        """Takes a snapshot of the current data; None if the cluster never formed, or withoutSafetyCopy allows it."""
        if not cluster.status.cluster_id:
            return None
        try:
            async with self._reach.cluster(cluster, ctx) as reached:
                return await take(reached, path, max_bytes=self._max_bytes)
        except (BackupError, CredentialsError) as error:
            if restore.spec.without_safety_copy:
                return None
            message = f"the safety copy of {cluster.name} failed: {error}; set withoutSafetyCopy to restore without one"
            raise BackupError(message) from None

    async def _safe(self, now: Snapshot | None, store: SnapshotStore, name: str, ctx: Context) -> str:
        """Stores the safety copy in the same store under an unused name, which it returns; empty if there is no data."""
        if now is None:
            return ""
        archive = Archive(store)
        verified = await self._trial.verified(now)
        return (await archive.put(now, await archive.unused(name), ctx.now(), verified)).object

    async def _seed(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        pod = await started(cluster, restore, ctx, self._image)
        if pod is None:
            restore.status.reason = f"the pod {restore.status.seed} differs from the spec: it is recreated"
            return
        if await seeded(pod, self._reach.pods(cluster, [pod], ctx), restore):
            await released(cluster, restore, ctx)
            _enter(restore, ctx, "Joining", f"{restore.status.seed} serves the snapshot; the other members join it")
            return
        with tempfile.TemporaryDirectory(prefix="etcd-restore-") as folder:
            way = await self._reach.way(cluster, ctx)
            await hand_over(pod, restore, way, lambda: self._fetched(restore, cluster, ctx, Path(folder)))

    async def _join(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        """Resumes the cluster and waits for its members. If all data is lost before it has formed, it starts over.

        After that a newer backup may exist, so a person decides.
        """
        if is_superseded(cluster, restore):
            _enter(restore, ctx, "Done", f"another restore acquired {cluster.name} before all members had joined")
        elif not restore.status.resumed:
            await resume(cluster, ctx)
            restore.status.resumed = True
        elif _may_begin_again(cluster) and await is_gone(cluster, restore, ctx) and await _is_alone(restore, ctx):
            status, now = restore.status, ctx.now()
            status.resumed, status.next_revision = False, unseen(now, status.etcd_revision, status.next_revision)
            _enter(restore, ctx, "Emptying", f"{status.seed} lost its pod and claim: it starts from the snapshot again")
        else:
            _finish(restore, cluster, ctx)

    async def _fetched(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context, folder: Path) -> Snapshot:
        async with self._opened(restore, cluster, ctx) as (store, name):
            return await Archive(store, max_bytes=self._max_bytes).fetch(name, folder / "snapshot.db")


async def cluster_of(restore: EtcdRestore, ctx: Context) -> EtcdCluster:
    """Reads the cluster from the API server: a stale cache may not show data that needs a safety copy."""
    name = restore.spec.etcd_cluster.name
    try:
        return await ctx.client.get(EtcdCluster, name, namespace=restore.namespace)
    except NotFound:
        raise BackupError(f"EtcdCluster {name} does not exist; create it with `paused: true`") from None


def _may_begin_again(cluster: EtcdCluster) -> bool:
    return not cluster.status.cluster_id and not cluster.spec.paused


async def _is_alone(restore: EtcdRestore, ctx: Context) -> bool:
    """Reports whether no other unfinished restore names the same cluster."""
    others = await ctx.client.list(EtcdRestore, namespace=restore.namespace)
    into = restore.spec.etcd_cluster
    return not any(
        each.spec.etcd_cluster == into and each.name != restore.name and each.status.phase != "Done" for each in others
    )


def _refuse_older(snapshot: Snapshot, cluster: EtcdCluster) -> None:
    wanted = EtcdVersion.of(cluster.spec.version)
    if snapshot.version and EtcdVersion.of(snapshot.version)[:2] > wanted[:2]:
        raise BackupError(f"etcd {wanted} cannot read a snapshot of {snapshot.version}: set the cluster's version")


def _enter(restore: EtcdRestore, ctx: Context, phase: Phase, message: str) -> None:
    restore.status.phase, restore.status.reason = phase, message
    ctx.event(f"Restore{phase}", message)


def _finish(restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
    ready = len(cluster.status.members.ready)
    paused = f"; {cluster.name} is paused, so no member joins" if cluster.spec.paused else ""
    restore.status.reason = f"{ready} of {cluster.spec.size} members serve{paused}"
    if cluster.status.cluster_id and ready == cluster.spec.size:
        _enter(
            restore,
            ctx,
            "Done",
            f"all members serve the snapshot of revision {restore.status.etcd_revision} and later writes",
        )
        restore.status.succeeded = True
