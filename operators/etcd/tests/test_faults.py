"""More of what real etcd processes go through; too long for the fast suite."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import msgspec
import pytest

from clusters import NAME, SECONDS, claims, example, processes_of, serves
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import EtcdCluster, EtcdSettings, Healing
from etcds import built_etcd, debians_etcd, machines, older_etcd
from navarch.errors import Invalid
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.testing import Cluster
from rig import programs
from workload import LONGEST_GAP, workload

NEWEST = programs.ETCD_VERSION.removeprefix("v")
pytestmark = [pytest.mark.real, pytest.mark.cluster(nodes=3), pytest.mark.timeout(400)]


async def test_a_killed_process_comes_back_and_a_wiped_disk_is_replaced() -> None:
    """A crash costs nothing; a seed that comes back without its data does not begin a cluster of its own.

    The etcd of PyPI may have forgotten writes after a crash; this one does not.
    """
    async with machines({NEWEST: programs.ETCD.path}) as cluster, cluster.run(etcd_operator()):
        await cluster.apply(example(3, version=NEWEST))
        before = await serves(cluster, 3)
        async with workload(cluster, NAME):
            kept = await claims(cluster)
            for process in processes_of(await cluster.get(Pod, f"{NAME}-1")):
                os.kill(process, signal.SIGKILL)
            await cluster.eventually(lambda: restarts(cluster, f"{NAME}-1"), lambda count: count >= 1, timeout=SECONDS)
            await serves(cluster, 3)
            assert await claims(cluster) == kept

            for process in processes_of(await cluster.get(Pod, f"{NAME}-0")):
                shutil.rmtree(f"/proc/{process}/root/var/etcd/data/member")
                os.kill(process, signal.SIGKILL)
            await cluster.eventually(
                lambda: cluster.get(EtcdCluster, NAME),
                lambda found: f"{NAME}-0" not in found.status.members.ready,
                timeout=SECONDS,
            )
            after = await serves(cluster, 3)
            assert len(await claims(cluster) & kept) == 2
        assert after.status.cluster_id == before.status.cluster_id


async def test_a_quorum_lost_for_good_is_said_and_recovered_where_that_is_allowed(cluster: Cluster) -> None:
    """Two of three disks are gone: the status has the command; once it is given, the third one's data is served."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            await cluster.eventually(lambda: cluster.list(Pod), lambda _: len(work.acknowledged) > 50, timeout=SECONDS)
        for name in (f"{NAME}-0", f"{NAME}-2"):
            await cluster.delete(PersistentVolumeClaim, name)
            await cluster.client.delete(Pod, name, grace_seconds=0)
        failed = await cluster.eventually(
            lambda: cluster.get(EtcdCluster, NAME), lambda found: found.status.phase == "Failed", timeout=SECONDS
        )
        assert "forceNewCluster" in failed.status.reason
        assert not failed.status.is_true("Available")
        await cluster.apply(example(3, healing=Healing(force_new_cluster=True)))
        await serves(cluster, 3)
        await work.verify()


async def test_members_without_claims_are_replaced_one_by_one(cluster: Cluster) -> None:
    """A pod that goes takes its data with it; another one joins before one goes by choice."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3, storage=None))
        await serves(cluster, 3)
        async with workload(cluster, NAME):
            await cluster.client.delete(Pod, f"{NAME}-1", grace_seconds=0)
            await cluster.eventually(
                lambda: cluster.get(EtcdCluster, NAME),
                lambda found: len(found.status.members.ready) == 2,
                timeout=SECONDS,
            )
            await serves(cluster, 3)
            await cluster.apply(example(3, storage=None, options=EtcdSettings(snapshot_count=5000)))
            await cluster.eventually(
                lambda: cluster.list(Pod),
                lambda pods: all("--snapshot-count=5000" in (pod.spec.containers[0].command or []) for pod in pods),
                timeout=2 * SECONDS,
            )
            await serves(cluster, 3)


async def test_three_become_five_and_three_again_with_the_newest_etcd() -> None:
    """While somebody writes; the leader is among those that stay."""
    async with machines({NEWEST: programs.ETCD.path}) as cluster, cluster.run(etcd_operator()):
        await cluster.apply(example(3, version=NEWEST))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            await cluster.apply(example(5, version=NEWEST))
            await serves(cluster, 5)
            await cluster.apply(example(3, version=NEWEST))
            await serves(cluster, 3)
        assert work.longest_gap < LONGEST_GAP


async def test_a_version_is_rolled_out_and_one_that_is_not_there_is_taken_back(tmp_path: Path) -> None:
    """Two etcds of PyPI, one member after the other, after a snapshot; then one that no machine has."""
    operator = etcd_operator(backups=tmp_path / "backups")
    async with machines({"3.5.0": older_etcd(tmp_path)}) as cluster, cluster.run(operator):
        await cluster.apply(example(3, version="3.5.0"))
        await serves(cluster, 3)
        async with workload(cluster, NAME):
            await cluster.apply(example(3, version="3.5.1"))
            found = await serves(cluster, 3)
            assert found.status.current_version == "3.5.1"
            saved = tmp_path / "backups" / "default" / f"{found.status.snapshot_before_upgrade}.manifest.json"
            assert msgspec.json.decode(saved.read_bytes())["version"] == "3.5.0"
            await cluster.apply(example(3, version="3.5.99"))
            await cluster.eventually(
                lambda: cluster.get(EtcdCluster, NAME),
                lambda now: now.status.failed_version == "3.5.99" and len(now.status.members.ready) == 3,
                timeout=SECONDS,
                what="a roll-out that was taken back",
            )


async def test_minor_versions_are_rolled_out_one_after_the_other(tmp_path: Path) -> None:
    """From Debian's etcd 3.4 to 3.5 and to 3.6, a member at a time, while somebody writes; a leap is refused at the door.

    3.6 does not start with what 3.4 has left in the log: in between, members forget it.
    """
    versions = {
        "3.4.23": debians_etcd(tmp_path),
        programs.OLDER_ETCD.version.removeprefix("v"): built_etcd(programs.OLDER_ETCD),
        NEWEST: programs.ETCD.path,
    }
    first, *later = versions
    async with machines(versions) as cluster, cluster.run(etcd_operator()):
        await cluster.apply(example(3, version=first))
        await serves(cluster, 3)
        with pytest.raises(Invalid, match="one minor version at a time"):
            await cluster.apply(example(3, version=later[-1]))
        async with workload(cluster, NAME) as work:
            for version in later:
                await cluster.apply(example(3, version=version, options=EtcdSettings(snapshot_count=50)))
                found = await serves(cluster, 3)
                assert found.status.current_version == version
        assert work.longest_gap < LONGEST_GAP


async def restarts(cluster: Cluster, name: str) -> int:
    """How often the containers of a pod have started again."""
    pod = await cluster.get(Pod, name)
    return sum(each.restart_count for each in pod.status.container_statuses or [])
