"""`ApiBackupKeeper` creates the EtcdBackups and EtcdRestores that a cluster itself needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from etcd_operator.backup.kinds import EtcdBackup, EtcdBackupSpec
from etcd_operator.backup.store_opener import StoreOpener
from etcd_operator.backup_keeper import BackupState, SnapshotOrigin
from etcd_operator.destinations import (
    BackupDestination,
    BackupPolicy,
    LocalSource,
    object_of,
    path_of,
    sources,
    with_object,
)
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import labels_of
from etcd_operator.restore.kinds import ClusterReference, EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.lock import RESTORING
from navarch import Context, Retry
from navarch.errors import AlreadyExists

_UID: Final = 8
"""The length of the uid prefix that distinguishes clusters of one name."""


class ApiBackupKeeper:
    """A `BackupKeeper` that creates EtcdBackups and EtcdRestores, owned by the cluster."""

    def __init__(self, stores: StoreOpener) -> None:
        self._stores = stores

    async def seen(self, cluster: EtcdCluster, ctx: Context) -> BackupState:
        own = {each.name: each for each in ctx.owned(EtcdBackup)}
        restores = [each for each in await ctx.list(EtcdRestore) if each.spec.etcd_cluster.name == cluster.name]
        wanted = self._before_upgrade(cluster)
        newest = await _newest(cluster, ctx)
        return BackupState(
            scheduled=_health(cluster, own.get(_scheduled_name(cluster))),
            newest=f"{newest.status.object} of {newest.status.last_success_date}" if newest else "",
            can_save=wanted is not None,
            restoring=under_way(restores, formed=bool(cluster.status.cluster_id)),
            emptying=any(each.status.phase in {"Emptying", "Seeding"} for each in restores),
            begun_from=any(each.name == _start_name(cluster) and _has_begun(each) for each in ctx.owned(EtcdRestore)),
            was_restored=RESTORING in cluster.annotations,
            **_saving(wanted, own.get(_upgrade_name(cluster))),
        )

    async def keep(self, cluster: EtcdCluster, ctx: Context) -> None:
        wanted = cluster.spec.backup
        if not cluster.status.cluster_id:
            return
        if wanted is not None and wanted.policy.is_repeated:
            spec = EtcdBackupSpec(cluster_name=cluster.name, backup_policy=wanted.policy, **sources(wanted))
            await ctx.apply(EtcdBackup(name=_scheduled_name(cluster), labels=labels_of(cluster), spec=spec))
        elif any(each.name == _scheduled_name(cluster) for each in ctx.owned(EtcdBackup)):
            await ctx.delete(EtcdBackup, _scheduled_name(cluster))

    async def back_up(self, cluster: EtcdCluster, ctx: Context) -> None:
        spec = self._before_upgrade(cluster)
        if spec is not None:
            await ctx.apply(EtcdBackup(name=_upgrade_name(cluster), labels=labels_of(cluster), spec=spec))

    def _before_upgrade(self, cluster: EtcdCluster) -> EtcdBackupSpec | None:
        """Returns the backup before the upgrade to the current spec; None without a destination.

        Its name contains version, generation and uid: snapshots for an earlier spec or cluster do not count, and stay.
        """
        wanted = cluster.spec.backup
        if wanted is not None and not wanted.before_upgrade:
            return None
        if wanted is None and not self._stores.has_folder:
            return None
        place = wanted or BackupDestination(local=LocalSource(path=f"upgrades/{cluster.name}"))
        policy = BackupPolicy(timeout_in_second=wanted.policy.timeout_in_second if wanted else 0)
        spec = f"{cluster.spec.version.removeprefix('v')}-{cluster.metadata.generation}"
        name = f"{object_of(place)}.before-{spec}-{(cluster.metadata.uid or '')[:_UID]}"
        return EtcdBackupSpec(cluster_name=cluster.name, backup_policy=policy, **sources(with_object(place, name)))

    async def restore(self, cluster: EtcdCluster, ctx: Context, origin: SnapshotOrigin, *, safely: bool) -> None:
        taken = {each.name for each in await ctx.list(EtcdRestore)}
        name = _start_name(cluster) if origin == "given" else _recovery_name(cluster, taken)
        place = cluster.spec.restore_from if origin == "given" else await _newest_place(cluster, ctx)
        if place is None:
            return
        reference = ClusterReference(name=cluster.name)
        spec = EtcdRestoreSpec(etcd_cluster=reference, without_safety_copy=not safely, **sources(place))
        try:
            await ctx.create(EtcdRestore(name=name, labels=labels_of(cluster), spec=spec))
        except AlreadyExists:
            cluster.status.next_step = f"EtcdRestore {name} exists and does not belong to this cluster: delete it"
            raise Retry(cluster.status.next_step) from None


def _scheduled_name(cluster: EtcdCluster) -> str:
    return f"{cluster.name}-scheduled"


def _upgrade_name(cluster: EtcdCluster) -> str:
    return f"{cluster.name}-before-upgrade"


def _start_name(cluster: EtcdCluster) -> str:
    return f"{cluster.name}-start"


def _recovery_name(cluster: EtcdCluster, taken: set[str]) -> str:
    """Returns an unused name: each recovery needs its own restore."""
    number = 1
    while f"{cluster.name}-recovery-{number}" in taken:
        number += 1
    return f"{cluster.name}-recovery-{number}"


def _health(cluster: EtcdCluster, scheduled: EtcdBackup | None) -> tuple[bool, str, str] | None:
    if cluster.spec.backup is None or not cluster.spec.backup.policy.is_repeated:
        return None
    said = scheduled.status.condition("BackupReady") if scheduled is not None else None
    if said is None:
        return False, "NotDueYet", "no backup was attempted yet"
    return said.status == "True", said.reason, said.message


def _saving(wanted: EtcdBackupSpec | None, found: EtcdBackup | None) -> dict[str, str]:
    if wanted is None or found is None or found.spec != wanted:
        return {}
    status = found.status
    if status.succeeded and status.observed_generation == found.metadata.generation:
        return {"saved": status.object}
    return {"saving": status.reason or "the snapshot is being taken"}


async def _newest(cluster: EtcdCluster, ctx: Context) -> EtcdBackup | None:
    """Returns the backup with the newest successful snapshot of this cluster.

    Snapshots of an earlier cluster of that name, and those at a former path of the spec, do not count.
    """
    dated = [
        (each.status.last_success_date, each.name, each)
        for each in await ctx.list(EtcdBackup)
        if each.spec.cluster_name == cluster.name and each.status.object and _is_of(each, cluster)
    ]
    return max(dated)[2] if dated else None


async def _newest_place(cluster: EtcdCluster, ctx: Context) -> BackupDestination | None:
    newest = await _newest(cluster, ctx)
    return with_object(newest.spec, newest.status.object) if newest else None


def _is_of(backup: EtcdBackup, cluster: EtcdCluster) -> bool:
    taken, made = backup.status.last_success_date, cluster.metadata.creation_timestamp
    there = backup.status.path == path_of(backup.spec)
    return there and taken is not None and (made is None or taken >= made)


def under_way(restores: Iterable[EtcdRestore], *, formed: bool) -> str:
    """Returns the message of the first unfinished restore; after the cluster has formed, a joining one counts as finished."""
    done = {"Joining", "Done"} if formed else {"Done"}
    for each in sorted(restores, key=lambda restore: restore.name):
        if each.status.phase not in done:
            return f"{each.name}: {each.status.reason or 'it has not started yet'}"
    return ""


def _has_begun(restore: EtcdRestore) -> bool:
    return restore.status.phase in {"Joining", "Done"}
