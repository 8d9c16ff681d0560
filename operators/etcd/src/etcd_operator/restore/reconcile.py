"""A restore, phase by phase. Each phase is written down before it is begun, and can be begun again."""

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
"""What etcd itself advises to add."""


def unseen(now: datetime, *known: int) -> int:
    """A revision that nobody can have seen of the cluster, whatever became of it since those that are known.

    It is the time in microseconds: no etcd makes a million writes a second, so that a cluster which began at an earlier
    one has not come so far. This needs no memory of the cluster, which may have been deleted in between. Where a clock
    was set back, what is known counts.

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
    """Brings `EtcdRestore`s about. `image` has a Python, for what happens in the pod before etcd starts."""

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
        """One phase further, or a look at how far it is. What does not work is said, and tried again."""
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
            restore.status.reason = f"Kubernetes does not let it happen: {error}"
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
        """Nothing of the cluster is touched before this has succeeded."""
        if others := await restores_ahead(restore, ctx):
            raise BackupError(f"{others[0].name} is under way and goes first; deleted, it would not be waited for")
        if strangers := await left_by_others(cluster, ctx):
            message = f"there is something of another cluster of this name: {', '.join(strangers)}"
            raise BackupError(f"{message}; unless it goes by itself, delete its pods and claims")
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
        _enter(restore, ctx, "Emptying", f"the snapshot is good, revision {snapshot.revision}; members are stopped")

    async def _empty(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        """Where another restore was faster, what the cluster has is not what was copied: it begins again after that one."""
        if not await acquire(cluster, restore, ctx):
            restore.status.phase, restore.status.reason = "", f"another restore of {cluster.name} goes first"
        elif await emptied(cluster, ctx):
            _enter(restore, ctx, "Seeding", f"{restore.status.seed} begins with the snapshot")

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
        """What the cluster has now; None if it has never had anything, or may go without."""
        if not cluster.status.cluster_id:
            return None
        try:
            async with self._reach.cluster(cluster, ctx) as reached:
                return await take(reached, path, max_bytes=self._max_bytes)
        except (BackupError, CredentialsError) as error:
            if restore.spec.without_safety_copy:
                return None
            message = f"no safety copy of what {cluster.name} has: {error}; withoutSafetyCopy goes on without one"
            raise BackupError(message) from None

    async def _safe(self, now: Snapshot | None, store: SnapshotStore, name: str, ctx: Context) -> str:
        """The name of what the cluster has now, in the same store; empty if there is nothing. No other copy is overwritten: of
        what an earlier restore has put there, it may be the only one.
        """
        if now is None:
            return ""
        archive = Archive(store)
        verified = await self._trial.verified(now)
        return (await archive.put(now, await archive.unused(name), ctx.now(), verified)).object

    async def _seed(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        pod = await started(cluster, restore, ctx, self._image)
        if pod is None:
            restore.status.reason = f"{restore.status.seed} is made anew, as it is asked for now"
            return
        if await seeded(pod, self._reach.pods(cluster, [pod], ctx), restore):
            await released(cluster, restore, ctx)
            _enter(restore, ctx, "Joining", f"{restore.status.seed} serves the snapshot; the others join it")
            return
        with tempfile.TemporaryDirectory(prefix="etcd-restore-") as folder:
            way = await self._reach.way(cluster, ctx)
            await hand_over(pod, restore, way, lambda: self._fetched(restore, cluster, ctx, Path(folder)))

    async def _join(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context) -> None:
        """Where all is lost again before the cluster has formed, it begins with the snapshot again: nobody has more. After
        that there may be a newer backup, and whoever lost the data is asked.
        """
        if is_superseded(cluster, restore):
            _enter(restore, ctx, "Done", f"{cluster.name} was given to another restore before all had joined")
        elif not restore.status.resumed:
            await resume(cluster, ctx)
            restore.status.resumed = True
        elif _may_begin_again(cluster) and await is_gone(cluster, restore, ctx) and await _is_alone(restore, ctx):
            status, now = restore.status, ctx.now()
            status.resumed, status.next_revision = False, unseen(now, status.etcd_revision, status.next_revision)
            _enter(restore, ctx, "Emptying", f"nothing is left of {status.seed}: it begins with the snapshot again")
        else:
            _finish(restore, cluster, ctx)

    async def _fetched(self, restore: EtcdRestore, cluster: EtcdCluster, ctx: Context, folder: Path) -> Snapshot:
        async with self._opened(restore, cluster, ctx) as (store, name):
            return await Archive(store, max_bytes=self._max_bytes).fetch(name, folder / "snapshot.db")


async def cluster_of(restore: EtcdRestore, ctx: Context) -> EtcdCluster:
    """As the server knows it: a cache that is behind may not know yet that it has data, of which a copy is to be kept."""
    name = restore.spec.etcd_cluster.name
    try:
        return await ctx.client.get(EtcdCluster, name, namespace=restore.namespace)
    except NotFound:
        raise BackupError(f"there is no EtcdCluster {name}; create it with `paused: true`") from None


def _may_begin_again(cluster: EtcdCluster) -> bool:
    return not cluster.status.cluster_id and not cluster.spec.paused


async def _is_alone(restore: EtcdRestore, ctx: Context) -> bool:
    """Whether nobody restores the same cluster beside it."""
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
    paused = f"; {cluster.name} is paused, and nobody joins" if cluster.spec.paused else ""
    restore.status.reason = f"{ready} of {cluster.spec.size} members serve{paused}"
    if cluster.status.cluster_id and ready == cluster.spec.size:
        _enter(restore, ctx, "Done", f"revision {restore.status.etcd_revision} and what came after is served")
        restore.status.succeeded = True
