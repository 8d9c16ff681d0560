"""Clusters that are killed, lose nodes, run side by side, and go without a trace."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.waiting import until, until_none
from cluster.controllers.managers import controlled
from cluster.nodes.machines import is_ready, long_while, processes_with, sleeping, status_of
from navarch.api import Dynamic
from navarch.client import Client, MergePatch, connect, load
from navarch.cluster.controllers.manager import ControllerManagerOptions
from navarch.cluster.controllers.node_health.node_lifecycle import UNREACHABLE, HealthOptions
from navarch.cluster.embedded import EmbeddedCluster
from navarch.cluster.embedded.cluster_folder import ClusterFolder, ClusterProcess, StoreKind, start_cluster
from navarch.cluster.embedded.components import POWER, POWER_OFF, ComponentOptions
from navarch.cluster.embedded.https_front import serve_https
from navarch.cluster.nodes import node_status
from navarch.k8s.core.v1 import Node, Pod, Service
from navarch.testing import Cluster
from navarch.testing.cluster import in_process

IN_A_ROW = int(os.environ.get("NAVARCH_CLUSTERS_IN_A_ROW", "8"))
"""200 take some minutes."""
SECONDS = 60.0
HURRIED = HealthOptions(look=0.1, silence=4.0, startup=8.0, sweep=0.1, quarantine=0.2)


def pod(name: str, script: str, **spec: Any) -> Dynamic:
    """A pod with a volume of its own at /own, and a claim at /kept."""
    mounts = [{"name": "own", "mountPath": "/own"}, {"name": "kept", "mountPath": "/kept"}]
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}
    volumes = [{"name": "own", "emptyDir": {}}, {"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}}]
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1, **spec}
    return Dynamic(apiVersion="v1", kind="Pod", metadata={"name": name}, spec=spec)


def claim() -> Dynamic:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return Dynamic(apiVersion="v1", kind="PersistentVolumeClaim", metadata={"name": "kept"}, spec=spec)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[ClusterFolder]:
    """The folder of a cluster that does not run yet, and not any more when the test has ended."""
    folder = ClusterFolder(tmp_path, "dev")
    yield folder
    if (running := folder.running()) is not None:
        running.stop()


def kill(running: ClusterProcess) -> None:
    """With -9, and returns when it is gone."""
    handle = os.pidfd_open(running.identity.pid)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)


async def seen(client: Client, name: str, holds: Callable[[Pod], bool]) -> Pod:
    """The pod, once it holds."""
    found: list[Pod] = []

    async def look() -> str | None:
        found[:] = [await client.get(Pod, name)]
        return None if holds(found[0]) else f"expected pod {name} to be otherwise than {found[0].status!r}"

    await until_none(look, seconds=SECONDS)
    return found[0]


@pytest.mark.parametrize("store", ["file", "etcd"])
async def test_a_killed_cluster_goes_on_where_it_was(folder: ClusterFolder, store: StoreKind) -> None:
    """After kill -9 nothing of its pods runs; started again it has them back by their policy, with their volumes."""
    seconds = long_while()
    script = f"echo x >> /own/x; echo x >> /kept/x; exec sleep {seconds}"
    running = start_cluster(folder, store=store, nodes=1)
    async with connect(load(folder.kubeconfig)) as client:
        await client.apply(claim())
        await until_account(client)
        await client.create(pod("again", script))
        await client.create(pod("once", script, restartPolicy="Never"))
        before = await seen(client, "again", is_ready)
        await seen(client, "once", is_ready)
    await until(lambda: len(sleeping(seconds)) == 2, "both scripts to be through", seconds=SECONDS)
    kill(running)
    await until(lambda: not sleeping(seconds), "no process of a pod", seconds=SECONDS)
    await until(lambda: not processes_with(str(folder.path)), "no process of the cluster", seconds=SECONDS)
    start_cluster(folder)
    async with connect(load(folder.kubeconfig)) as client:
        after = await seen(client, "again", lambda pod: is_ready(pod) and status_of(pod).restart_count == 1)
        lost = await seen(client, "once", lambda pod: pod.status.phase == "Failed")
        await until(lambda: len(sleeping(seconds)) == 1, "the script to be through", seconds=SECONDS)
        assert (await client.exec(after.name, ["cat", "/own/x"])).stdout == b"x\nx\n"
    assert after.metadata.uid == before.metadata.uid
    assert status_of(lost).restart_count == 0
    (kept,) = folder.machines.glob("volumes/*/*/x")
    assert kept.read_text() == "x\n" * 3


async def until_account(client: Client) -> None:
    """Pods are refused until their namespace has its ServiceAccount."""
    kind = await client.discovery.kind("v1", "ServiceAccount")

    async def look() -> str | None:
        return None if list(await client.list(kind)) else "expected a ServiceAccount"

    await until_none(look, seconds=SECONDS)


def deployment(name: str, replicas: int, script: str) -> Dynamic:
    tolerated = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
        for key in (UNREACHABLE, "node.kubernetes.io/not-ready")
    ]
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    spec = {"containers": [container], "tolerations": tolerated, "terminationGracePeriodSeconds": 1}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    whole = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return Dynamic(apiVersion="apps/v1", kind="Deployment", metadata={"name": name}, spec=whole)


def at_work(pods: list[Pod]) -> list[str | None]:
    """The nodes of the pods that are ready and not about to go."""
    return [pod.spec.node_name for pod in pods if is_ready(pod) and pod.metadata.deletion_timestamp is None]


async def test_pods_leave_a_node_that_is_off_and_it_cleans_up_when_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made anew on another; the old ones end when their node is back, and none of their processes does."""
    monkeypatch.setattr(node_status, "_RENEWAL_SECONDS", 0.2)
    seconds = long_while()
    async with in_process(ComponentOptions(controllers=False, nodes=2)) as cluster:

        async def pods() -> list[Pod]:
            return list(await cluster.list(Pod))

        def power(value: str | None) -> Awaitable[Node]:
            return cluster.client.patch(Node, "node-1", MergePatch({"metadata": {"annotations": {POWER: value}}}))

        async with controlled(cluster, ControllerManagerOptions(health=HURRIED)):
            await cluster.eventually(lambda: cluster.list(Node), lambda found: len(found) == 2, timeout=SECONDS)
            await cluster.apply(deployment("web", 2, f"exec sleep {seconds}"))
            await cluster.eventually(
                pods, lambda found: sorted(map(str, at_work(found))) == ["node-1", "node-2"], timeout=SECONDS
            )
            await power(POWER_OFF)
            await cluster.eventually(pods, lambda found: at_work(found) == ["node-2"] * 2, timeout=SECONDS)
            await until(lambda: len(sleeping(seconds)) == 2, "a process for each", seconds=SECONDS)
            (lost,) = [pod for pod in await pods() if pod.spec.node_name == "node-1"]
            assert lost.metadata.deletion_timestamp is not None
            await power(None)
            await cluster.eventually(
                pods, lambda found: len(found) == 2 and at_work(found) == ["node-2"] * 2, timeout=SECONDS
            )
            await until(lambda: len(sleeping(seconds)) == 2, "no other process", seconds=SECONDS)


async def test_clusters_side_by_side_share_no_addresses() -> None:
    """Of nodes, pods and services: each is in its own cluster's part of the loopback network."""
    async with in_process(ComponentOptions(nodes=2)) as one, in_process(ComponentOptions(nodes=2)) as other:
        networks = []
        for cluster in (one, other):
            await cluster.eventually(lambda: cluster.list(Node), lambda found: len(found) == 2, timeout=SECONDS)  # noqa: B023 - awaited at once
            await cluster.apply(deployment("web", 2, "exec sleep 86402"))
            networks.append({address.split(".")[1] for address in await _addresses(cluster)})
        assert [len(network) for network in networks] == [1, 1]
        assert networks[0] != networks[1]


def test_clusters_that_take_turns_find_their_addresses_again(tmp_path: Path) -> None:
    """Another one that was made while the first was down does not have them."""
    one, *others = [ClusterFolder(tmp_path, f"cluster-{number}") for number in range(9)]
    other = next(each for each in others if _chance(each) != _chance(one))
    try:
        start_cluster(one, nodes=1).stop()
        start_cluster(other, nodes=1)
        start_cluster(one)
    finally:
        for folder in (one, other):
            if (running := folder.running()) is not None:
                running.stop()


def _chance(folder: ClusterFolder) -> int:
    """One in a hundred clusters would rather have the same addresses."""
    return zlib.crc32(bytes(folder.machines)) % 96


async def _addresses(cluster: Cluster) -> list[str]:
    async def pods() -> list[Pod]:
        return list(await cluster.list(Pod))

    ready = await cluster.eventually(pods, lambda found: len(at_work(found)) == 2, timeout=SECONDS)
    nodes = [known.address for node in await cluster.list(Node) for known in (node.status.addresses or [])[:1]]
    services = [service.spec.cluster_ip or "" for service in await cluster.list(Service)]
    return [*nodes, *services, *(pod.status.pod_ip or "" for pod in ready)]


class Traces:
    """What this process has of the machine: processes, open files and ports, mounts, threads, temporary files."""

    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary

    def found(self) -> dict[str, list[str]]:
        gc.collect()
        own = os.getpid()
        return {
            "processes": Path(f"/proc/{own}/task/{own}/children").read_text().split(),
            "files": sorted(_opened()),
            "mounts": [line for line in _mounts() if str(self._temporary) in line],
            "threads": sorted(thread.name for thread in threading.enumerate() if "asyncio" not in thread.name),
            "temporary": sorted(path.name for path in self._temporary.iterdir()),
        }

    async def left_since(self, before: dict[str, list[str]]) -> str | None:
        """What is there now and was not before, in words; what others had before may have gone."""
        found = {kind: Counter(now) - Counter(before[kind]) for kind, now in self.found().items()}
        left = {kind: dict(more) for kind, more in found.items() if more}
        return f"expected nothing to be left, got {left}" if left else None


def _mounts() -> list[str]:
    """Those of other processes too, which come and go."""
    return Path("/proc/self/mountinfo").read_text().splitlines()


def _opened() -> Iterator[str]:
    """What is open, by kind: sockets are told apart by their number, which says nothing."""
    for link in Path("/proc/self/fd").iterdir():
        try:
            yield os.readlink(link).split(":[")[0]  # noqa: PTH115 - a number, no path
        except OSError:
            continue


@pytest.mark.timeout(1800)
@pytest.mark.long
async def test_clusters_in_a_row_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, mount, file or port, however many there were, each with a pod that ran."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    traces, seconds = Traces(tmp_path), long_while()
    await _one_cluster(seconds)  # what is made once for all of them
    before = traces.found()
    for _ in range(IN_A_ROW):
        await _one_cluster(seconds)
    await until(lambda: not sleeping(seconds), "no process of a pod", seconds=SECONDS)
    await until_none(lambda: traces.left_since(before), seconds=SECONDS)
    assert before["temporary"] == []


async def _one_cluster(seconds: str) -> None:
    async with EmbeddedCluster(components=ComponentOptions(nodes=1)) as embedded, serve_https(embedded) as access:
        cluster = Cluster(embedded.client(), embedded, access)
        await cluster.eventually(lambda: cluster.list(Node), lambda found: len(found) == 1, timeout=SECONDS)
        await cluster.apply(deployment("web", 1, f"exec sleep {seconds}"))

        async def pods() -> list[Pod]:
            return list(await cluster.list(Pod))

        await cluster.eventually(pods, lambda found: len(at_work(found)) == 1, timeout=SECONDS)
