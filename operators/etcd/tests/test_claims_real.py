"""A backup on a claim, and from there, in a container of a real node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rig
from etcd_members import running_etcd
from etcd_operator.backup import EtcdBackup, EtcdBackupSpec, PvcSource
from etcd_operator.backup.claim_pods import LABELS
from etcd_operator.backup.snapshots import check
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import EtcdCluster, EtcdClusterSpec
from etcd_operator.restore import EtcdRestore, EtcdRestoreSpec
from etcd_operator.restore.kinds import ClusterReference
from navarch.api import Quantity
from navarch.client import Client, WatchOptions, connect, load
from navarch.etcd import EtcdClient, EtcdOptions
from navarch.k8s.core.v1 import (
    LocalVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Pod,
    Secret,
    VolumeNodeAffinity,
    VolumeResourceRequirements,
)
from navarch.operator import Operator
from operated import running
from python_image import NAME, give_python_to
from rig import tools

pytestmark = [pytest.mark.real, pytest.mark.timeout(480)]
SECONDS = 120
PLACE = PvcSource(claim_name="backups", path="some/etcd.db")
ROOM = {"storage": Quantity("1Gi")}


@pytest.fixture
def cluster_with_node() -> Iterator[rig.Cluster]:
    """A real Kubernetes."""
    with rig.running(node=True) as cluster:
        yield cluster


@pytest.fixture
async def node_client(cluster_with_node: rig.Cluster) -> AsyncIterator[Client]:
    """A client of it."""
    async with connect(load(cluster_with_node.kubeconfig)) as client:
        yield client


async def test_a_backup_goes_to_a_claim_of_a_real_node_and_comes_from_there(
    cluster_with_node: rig.Cluster, node_client: Client, tmp_path: Path
) -> None:
    """Its pod is nobody's, and the volume is its group's; a restore has read the same snapshot; no pod is left."""
    give_python_to(cluster_with_node, tmp_path)
    (tmp_path / "volume").mkdir()
    await bound_claim(node_client, cluster_with_node, tmp_path / "volume")
    with running_etcd(tools.old_etcd, tmp_path) as etcd:
        async with running(node_client, an_operator()):
            revision = await written(etcd.urls)
            spec = EtcdBackupSpec(etcd_endpoints=list(etcd.urls), pvc=PLACE)
            await node_client.create(EtcdBackup(name="once", spec=spec))
            made = await until(node_client, EtcdBackup, "once", lambda found: found.status.succeeded)
            await node_client.create(EtcdCluster(name="example", spec=EtcdClusterSpec(size=1, paused=True)))
            back = EtcdRestoreSpec(pvc=PLACE, etcd_cluster=ClusterReference(name="example"))
            await node_client.create(EtcdRestore(name="back", spec=back))
            read = await until(node_client, EtcdRestore, "back", lambda found: found.status.phase)
            await nothing_is_left(node_client)
    assert read.status.sha256 == made.status.sha256
    path = tmp_path / "volume" / "some" / "etcd.db"
    assert check(path).revision == revision == made.status.etcd_revision
    assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o007) == (65532, 65532, 0)


async def bound_claim(client: Client, cluster: rig.Cluster, folder: Path) -> None:
    """A folder of the node."""
    here = NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=[str(cluster.node)])
    await client.create(
        PersistentVolume(
            name="volume",
            spec=PersistentVolumeSpec(
                capacity=ROOM,
                access_modes=["ReadWriteOnce"],
                local=LocalVolumeSource(path=str(folder)),
                node_affinity=VolumeNodeAffinity(
                    required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[here])])
                ),
            ),
        )
    )
    spec = PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        resources=VolumeResourceRequirements(requests=ROOM),
        storage_class_name="",
        volume_name="volume",
    )
    await client.create(PersistentVolumeClaim(name="backups", spec=spec))


def an_operator() -> Operator:
    made = etcd_operator(python_image=NAME)
    made.drain_seconds = 1.0
    return made


async def written(urls: tuple[str, ...]) -> int:
    async with EtcdClient(EtcdOptions(endpoints=urls)) as client:
        return (await client.kv.put(b"/a", b"1")).header.revision


async def until(client: Client, kind: Any, name: str, met: Callable[[Any], Any]) -> Any:
    """The object, once it is as it should be."""
    last: Any = None
    try:
        async with (
            asyncio.timeout(SECONDS),
            client.watch(kind, fields={"metadata.name": name}, options=WatchOptions(initial=True)) as changes,
        ):
            async for change in changes:
                last = change.object
                if met(last):
                    return last
    except TimeoutError:
        pytest.fail(f"expected {name} to be done within {SECONDS} s, got {last}")


async def nothing_is_left(client: Client) -> None:
    """Neither a pod nor what it has proved itself with."""
    async with asyncio.timeout(SECONDS):
        while await left(client):
            await client.clock.sleep(0.2)


async def left(client: Client) -> int:
    pods, secrets = await client.list(Pod, labels=LABELS), await client.list(Secret, labels=LABELS)
    return len(pods) + len(secrets)
