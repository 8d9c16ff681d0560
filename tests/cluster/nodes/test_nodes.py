"""Nodes register, send heartbeats, fail and come back."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from chaos.waiting import until
from cluster.nodes.machines import (
    Machine,
    is_ready,
    long_while,
    processes_with,
    running_machine,
    shell,
    sleeping,
    status_of,
)
from navarch._base.clock import ManualClock
from navarch.client import MergePatch
from navarch.cluster.embedded import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.nodes.node_status import LEASES, Heartbeat, Profile, node_object, register
from navarch.cluster.storage.file import FileStorage
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import Node, Pod, PodSpec, Taint
from navarch.testing.cluster import Cluster, in_process


async def test_a_node_says_what_it_is(machine: Machine) -> None:
    """The Node object has labels, addresses, capacity, conditions and a Lease, as kubelet writes them."""
    node = await machine.cluster.get(Node, "machine")
    assert node.labels["kubernetes.io/hostname"] == "machine"
    assert node.labels["kubernetes.io/os"] == "linux"
    assert {known.type: known.status for known in node.status.conditions or []} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert {"cpu", "memory", "ephemeral-storage", "pods"} == set(node.status.capacity or {})
    assert node.status.node_info is not None
    assert node.status.node_info.kubelet_version == "v1.36.4"
    lease = await machine.cluster.eventually(
        lambda: machine.cluster.get(Lease, "machine", namespace=LEASES), lambda found: found.spec.renew_time
    )
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("machine", 40)


async def test_registering_again_keeps_what_others_set() -> None:
    """A known node updates its own fields, and keeps cordons, taints and labels of others."""
    async with in_process() as cluster:
        now = datetime(2030, 1, 1, tzinfo=UTC)
        await register(
            cluster.client, node_object(Profile(name="n", taints=(Taint(key="a", effect="NoSchedule"),)), now)
        )
        mine = {"metadata": {"labels": {"mine": "yes"}}, "spec": {"unschedulable": True}}
        await cluster.client.patch(Node, "n", MergePatch(mine))
        found = await register(cluster.client, node_object(Profile(name="n", address="127.0.0.9"), now))
    assert found.labels["mine"] == "yes"
    assert found.spec.unschedulable
    assert [taint.key for taint in found.spec.taints or []] != []
    assert [known.address for known in found.status.addresses or []] == ["127.0.0.9", "n"]


async def test_signs_of_life_come_every_ten_seconds() -> None:
    """The Lease is renewed; a deleted one is created anew."""
    async with in_process() as cluster:
        clock = ManualClock()
        node = await register(cluster.client, node_object(Profile(name="n"), clock.now()))
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(Heartbeat(cluster.client, node, clock).run())
            await clock.until_sleeping()
            first = await cluster.get(Lease, "n", namespace=LEASES)
            await clock.advance(10)
            await clock.until_sleeping()
            second = await cluster.get(Lease, "n", namespace=LEASES)
            await cluster.client.delete(Lease, "n", namespace=LEASES)
            await clock.advance(10)
            await clock.until_sleeping()
            third = await cluster.get(Lease, "n", namespace=LEASES)
            beating.cancel()
    assert first.spec.renew_time is not None
    assert second.spec.renew_time is not None
    assert (second.spec.renew_time - first.spec.renew_time).total_seconds() == 10
    assert third.metadata.uid != first.metadata.uid


async def test_pods_come_back_with_their_node(machine: Machine) -> None:
    """A killed node continues with its pods: restarts are counted, volumes are kept, and pods that run once have
    failed.
    """
    mounts = [{"name": "data", "mountPath": "/data"}]
    script = "echo x >> /data/x; trap 'exit 0' TERM; while :; do sleep 0.05; done"
    volumes = [{"name": "data", "emptyDir": {}}]
    first = await machine.run(shell(script, volume_mounts=mounts), volumes=volumes)
    await machine.shows(first, "x\n", "cat", "/data/x")
    await machine.run(shell("sleep 100"), name="once", restart_policy="Never")
    await machine.node.kill()
    await machine.cluster.eventually(_is_down(machine), bool, what="the node to end")
    async with machine.up():
        pod = await machine.until(lambda pod: is_ready(pod) and status_of(pod).restart_count == 1)
        await machine.shows(pod, "x\nx\n", "cat", "/data/x")
        last = status_of(pod).last_state
        assert last is not None
        assert last.terminated is not None
        assert (last.terminated.exit_code, last.terminated.reason) == (137, "ContainerStatusUnknown")
        assert (pod.metadata.uid, pod.status.phase) == (first.metadata.uid, "Running")
        assert (pod.status.pod_ip, len(pod.status.pod_ips or [])) != (None, 0)
        once = await machine.until(lambda pod: pod.status.phase == "Failed", name="once")
        assert status_of(once).restart_count == 0


def _is_down(machine: Machine) -> Callable[[], Awaitable[bool]]:
    async def is_down() -> bool:
        return not machine.node.ready.is_set()

    return is_down


async def test_a_node_that_is_cut_off_cleans_up_when_it_returns(machine: Machine) -> None:
    """Its pods keep running; pods that were deleted meanwhile terminate when it returns."""
    seconds = long_while()
    await machine.run(shell(f"exec sleep {seconds}"))
    await machine.cluster.eventually(_sleeping(seconds), bool, timeout=60, what="the process to begin")
    await machine.node.cut_off()
    await machine.cluster.client.delete(Pod, "pod", grace_seconds=0)
    assert sleeping(seconds)
    await machine.node.cut_off(cut=False)
    await machine.cluster.eventually(_sleeping(seconds), lambda found: not found, timeout=60, what="the process to end")


def _sleeping(seconds: str) -> Callable[[], Awaitable[list[int]]]:
    async def found() -> list[int]:
        return sleeping(seconds)

    return found


async def test_a_frozen_node_stands_still_and_goes_on(machine: Machine) -> None:
    """No process of it runs while it is frozen; afterwards they do, and nothing was lost."""
    seconds = long_while()
    await machine.run(shell(f"sleep {seconds}"))
    (pid,) = await machine.cluster.eventually(_sleeping(seconds), lambda found: len(found) == 1, timeout=60)
    await machine.node.freeze()
    await machine.cluster.eventually(lambda: _state(pid), lambda state: state == "T", what="the process to stop")
    await machine.node.freeze(frozen=False)
    await machine.cluster.eventually(lambda: _state(pid), lambda state: state == "S", what="the process to go on")
    await machine.run(shell("sleep 100"), name="another")


async def _state(pid: int) -> str:
    return _stat(pid).rpartition(")")[2].split()[0]


def _stat(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text()


_CLUSTER = """
import asyncio, sys
from pathlib import Path
from cluster.nodes.machines import running_machine, shell
from navarch.testing.cluster import in_process

async def main():
    async with in_process() as cluster, running_machine(cluster, Path(sys.argv[1])) as machine:
        await machine.run(shell(f"(setsid sleep {sys.argv[2]} &); sleep {sys.argv[2]}"))
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_nothing_outlives_a_cluster_that_was_killed(tmp_path: Path) -> None:
    """kill -9 of the cluster's process ends every process of every pod, also those that left their session."""
    seconds = long_while()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLUSTER, str(tmp_path), seconds, env=env, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(120):
        assert await process.stdout.readline() == b"ready\n"
    await until(lambda: len(sleeping(seconds)) == 2, "both processes", seconds=60)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await until(lambda: not sleeping(seconds) and not processes_with(str(tmp_path)), "no process", seconds=60)


async def test_a_cluster_on_its_store_goes_on_with_its_pods(tmp_path: Path) -> None:
    """A cluster that is started again on its store has its pods back, by their restart policy and with their volumes."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    spec = PodSpec(
        containers=[shell("echo x >> /data/x; trap 'exit 0' TERM; while :; do sleep 0.05; done", volume_mounts=mounts)],
        volumes=[{"name": "data", "emptyDir": {}}],  # type: ignore[list-item]  # as in a manifest
    )
    for restarts in (0, 1):
        storage = await FileStorage.open(tmp_path / "data")
        components = ComponentOptions(nodes=1, folder=tmp_path / "machine")
        async with EmbeddedCluster(storage, components=components) as embedded:
            cluster = Cluster(embedded.client(), embedded)
            if restarts == 0:
                await cluster.create(Pod(name="pod", spec=spec))
            pod = await cluster.eventually(
                lambda cluster=cluster: cluster.get(Pod, "pod"),  # type: ignore[misc]  # bound now
                lambda pod, restarts=restarts: is_ready(pod) and status_of(pod).restart_count == restarts,  # type: ignore[misc]
                timeout=60,
            )
            written = tmp_path / "machine" / "nodes" / "node-1" / "pods" / pod.metadata.uid / "volumes" / "data" / "x"
            await until(lambda: _text(written) == "x\n" * (restarts + 1), "one more line", seconds=60)  # noqa: B023 - awaited at once


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def test_leaving_leaves_nothing(tmp_path: Path) -> None:
    """A node that ends kills its processes, and its pods stay in the cluster."""
    seconds = long_while()
    async with in_process() as cluster:
        await _run_and_leave(cluster, tmp_path, seconds)
        pod = await cluster.get(Pod, "pod")
    assert pod.status.phase == "Running"
    assert not sleeping(seconds)
    assert not processes_with(str(tmp_path))
    assert str(tmp_path) not in _mounts()


def _mounts() -> str:
    return Path("/proc/self/mounts").read_text()


async def _run_and_leave(cluster: Cluster, folder: Path, seconds: str) -> None:
    async with running_machine(cluster, folder) as machine:
        await machine.run(shell(f"sleep {seconds}"))
