"""Backups on claims of real members, and back: made, kept, thinned, verified and restored through a pod that goes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clusters import NAME, SECONDS, serves
from clusters import example as usual
from etcd_operator.backup import EtcdBackup, EtcdBackupSpec, PvcSource
from etcd_operator.backup.claims.pods import LABELS
from etcd_operator.backup.snapshots import check
from etcd_operator.kinds import EtcdCluster, PodPolicy
from etcd_operator.operator import etcd_operator
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference
from navarch.api import Quantity
from navarch.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod, PodSecurityContext, Secret
from navarch.testing import Cluster
from workload import client_of

CLAIM = PvcSource(claim_name="backups", path="some/etcd.db", size=Quantity("1Gi"))


def example(size: int = 1, **fields: Any) -> EtcdCluster:
    """Its pods run as whoever runs the tests: nobody else need be able to run this machine's Python."""
    return usual(size, pod=PodPolicy(security_context=PodSecurityContext()), **fields)


def backup(name: str = "once", **fields: Any) -> EtcdBackup:
    return EtcdBackup(name=name, spec=EtcdBackupSpec(**{"cluster_name": NAME, "pvc": CLAIM, **fields}))


async def made(cluster: Cluster, name: str = "once") -> EtcdBackup:
    return await cluster.eventually(
        lambda: cluster.get(EtcdBackup, name),
        lambda found: found.status.succeeded,
        timeout=SECONDS,
        what="a backup on a claim",
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


async def put(cluster: Cluster, key: bytes, value: bytes) -> int:
    async with await client_of(cluster, NAME) as etcd:
        return (await etcd.kv.put(key, value)).header.revision


async def get(cluster: Cluster, key: bytes) -> bytes | None:
    async with await client_of(cluster, NAME) as etcd:
        found = await etcd.kv.get(key)
    return found.value if found else None


@pytest.mark.cluster(nodes=1)
async def test_a_cluster_goes_back_to_a_backup_on_a_claim(cluster: Cluster) -> None:
    """The claim is made and stays; what the cluster had is beside the backup; nothing is left of the pods."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example())
        await serves(cluster, 1)
        first = await put(cluster, b"/a", b"first")
        await cluster.apply(backup())
        assert (await made(cluster)).status.etcd_revision == first
        later = await put(cluster, b"/a", b"second")
        spec = EtcdRestoreSpec(pvc=CLAIM, etcd_cluster=ClusterReference(name=NAME))
        await cluster.apply(EtcdRestore(name="back", spec=spec))
        done = await cluster.eventually(
            lambda: cluster.get(EtcdRestore, "back"), lambda found: found.status.succeeded, timeout=SECONDS
        )
        assert await get(cluster, b"/a") == b"first"
        await nothing_is_left(cluster)
        await cluster.delete(EtcdBackup, "once")
        folder = await folder_of(cluster)
        assert check(folder / done.status.safety_copy).revision == later
        assert {each.name for each in (folder / "some").iterdir()} == {
            f"etcd.db{copy}{ending}" for copy in ("", ".before-back") for ending in ("", ".manifest.json")
        }
