"""`navarch cluster node` lists, switches and drains nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.programs import Program
from navarch._base.clock import ManualClock
from navarch.api import Dynamic
from navarch.cli.drain import Drain, Drained, DrainOptions
from navarch.cli.nodes import wait_until_ready
from navarch.client import Client, connect
from navarch.cluster.embedded.cluster_folder import ClusterFolder
from navarch.cluster.embedded.components import ComponentOptions
from navarch.errors import ConfigError
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import Node, Pod
from navarch.testing import Cluster
from navarch.testing.cluster import in_process

SECONDS = 60.0


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Two nodes that pods can run on."""
    async with in_process(ComponentOptions(nodes=2)) as made:
        await made.eventually(
            lambda: made.list(Node), lambda found: [*map(is_ready, found)] == [True] * 2, timeout=SECONDS
        )
        yield made


def pod_spec(**fields: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "pause"}
    return {"containers": [container], "terminationGracePeriodSeconds": 1, **fields}


def workload(kind: str, name: str, **spec: Any) -> Dynamic:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec()}
    selector = {"matchLabels": {"app": name}}
    return Dynamic(
        apiVersion="apps/v1",
        kind=kind,
        metadata={"name": name},
        spec={"selector": selector, "template": template, **spec},
    )


def budget(name: str, least: int) -> Dynamic:
    selector = {"matchLabels": {"app": name}}
    spec = {"minAvailable": least, "selector": selector}
    return Dynamic(apiVersion="policy/v1", kind="PodDisruptionBudget", metadata={"name": name}, spec=spec)


async def ready_pods(cluster: Cluster, app: str, count: int) -> list[Pod]:
    def are_ready(pods: list[Pod]) -> bool:
        return len([pod for pod in pods if is_ready(pod)]) == len(pods) == count

    async def pods() -> list[Pod]:
        return list(await cluster.list(Pod, labels={"app": app}))

    return await cluster.eventually(pods, are_ready, timeout=SECONDS)


def is_ready(found: Node | Pod) -> bool:
    return any(known.type == "Ready" and known.status == "True" for known in found.status.conditions or [])


async def drain(client: Client, node: str, **options: Any) -> Drained:
    return await Drain(client, node, DrainOptions(pause=0.1, **options), lambda _: None).run()


async def test_drain_moves_pods_and_leaves_those_of_daemon_sets(cluster: Cluster) -> None:
    """The node is cordoned, and the pods of a Deployment are on another node afterwards."""
    await cluster.client.apply(workload("DaemonSet", "everywhere"))
    await cluster.client.apply(workload("Deployment", "web", replicas=2))
    before = await ready_pods(cluster, "web", 2)
    daemons = await ready_pods(cluster, "everywhere", 2)
    node = before[0].spec.node_name or ""
    said: list[str] = []
    result = await Drain(cluster.client, node, DrainOptions(), said.append).run()
    assert set(result.evicted) == {f"default/{pod.name}" for pod in before if pod.spec.node_name == node}
    assert set(result.ignored) == {f"default/{pod.name}" for pod in daemons if pod.spec.node_name == node}
    assert said[0] == f"node {node!r} is cordoned"
    after = await ready_pods(cluster, "web", 2)
    assert node not in {pod.spec.node_name for pod in after}
    assert (await cluster.get(Node, node)).spec.unschedulable


async def test_drain_respects_budgets(cluster: Cluster) -> None:
    """A refused eviction is retried until another pod is ready; a time-out names the pods that are left, and why."""
    await cluster.client.apply(workload("Deployment", "web", replicas=1))
    await cluster.client.apply(budget("web", 1))
    (pod,) = await ready_pods(cluster, "web", 1)
    node = pod.spec.node_name or ""
    await _until_counted(cluster)
    clock = ManualClock()
    by_hand = Client(cluster.client._caller.transport, cluster.client.options, clock=clock)
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        group.create_task(_stays(by_hand, node, rf"within 2 s, got pods that are left: default/{pod.name}: .*budget"))
        await clock.until_sleeping(2)  # the whole drain, and the pause after the first refusal
        await clock.advance(2)
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(drain(cluster.client, node, timeout=SECONDS))
        await cluster.client.scale(Deployment, "web", 2)
    assert draining.result().evicted == (f"default/{pod.name}",)


async def _stays(client: Client, node: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        await drain(client, node, timeout=2)


async def _until_counted(cluster: Cluster) -> None:
    """The budget has been looked at, so that it forbids rather than is not known."""
    kind = await cluster.client.discovery.kind("policy/v1", "PodDisruptionBudget")
    await cluster.eventually(
        lambda: cluster.client.get(kind, "web"), lambda found: found["status"]["currentHealthy"] == 1, timeout=SECONDS
    )


@pytest.mark.parametrize(
    ("fields", "said", "allowed"),
    [
        ({}, "no controller recreates these pods: default/single", {"force": True}),
        (
            {"volumes": [{"name": "data", "emptyDir": {}}]},
            "emptyDir volumes would be lost: default/single",
            {"force": True, "delete_data": True},
        ),
    ],
    ids=["single", "data"],
)
async def test_drain_loses_nothing_unless_it_is_told_to(
    cluster: Cluster, fields: dict[str, Any], said: str, allowed: dict[str, bool]
) -> None:
    """The error names what would be lost and the option that allows it; nothing is evicted before."""
    await cluster.client.create(
        Dynamic(apiVersion="v1", kind="Pod", metadata={"name": "single"}, spec=pod_spec(nodeName="node-1", **fields))
    )
    with pytest.raises(ConfigError, match=said):
        await drain(cluster.client, "node-1")
    assert (await cluster.get(Pod, "single")).metadata.deletion_timestamp is None
    assert (await drain(cluster.client, "node-1", **allowed)).evicted == ("default/single",)


def status_of(program: Program, node: str) -> Callable[[], str]:
    def found() -> str:
        rows = program.json("cluster", "node", "list", "--name", "dev")
        return str({row["name"]: row["status"] for row in rows}[node])

    return found


async def test_nodes_are_listed_switched_and_emptied(program: Program) -> None:
    """By the command line alone; a node that was switched off is off also after the cluster was started again."""
    went_up = program.run("cluster", "up", "--name", "dev", "--nodes", "2")
    assert "node-2  Ready" in went_up.stderr
    assert program.status()[0]["nodes"] == "2/2"
    status = status_of(program, "node-2")
    assert "node 'node-2' is off" in program.run("cluster", "node", "stop", "node-2", "--name", "dev").stderr
    program.run("cluster", "down", "--name", "dev")
    assert program.run("cluster", "up", "--name", "dev").returncode == 0
    assert (status(), program.status()[0]["nodes"]) == ("Off", "1/2")
    program.run("cluster", "node", "start", "node-2", "--name", "dev")
    assert status() == "Ready"
    drained = program.json("cluster", "node", "drain", "node-2", "--name", "dev")
    assert drained == {"node": "node-2", "evicted": [], "ignored": []}
    assert status() == "Ready,SchedulingDisabled"
    program.run("cluster", "node", "uncordon", "node-2", "--name", "dev")
    assert status() == "Ready"


async def test_a_node_that_is_off_runs_nothing(program: Program) -> None:
    """Its processes end at once, and are back after it is switched on."""
    program.run("cluster", "up", "--name", "dev")
    async with connect(program.kubeconfig()) as client:
        shims = _children(program)
        assert len(shims) == 1
        program.run("cluster", "node", "stop", "node-1", "--name", "dev")
        await _until(client, lambda: not _children(program), "the shim of node-1 to end")
        program.run("cluster", "node", "start", "node-1", "--name", "dev")
        await _until(client, lambda: len(_children(program)) == 1, "a shim of node-1")
        assert _children(program) != shims


async def _until(client: Client, holds: Callable[[], bool], what: str) -> None:
    limit = client.clock.monotonic() + SECONDS
    while not holds():
        assert client.clock.monotonic() < limit, f"expected {what} within {SECONDS:g} s"
        await client.clock.sleep(0.05)


def _children(program: Program) -> list[int]:
    pid = program.status()[0]["pid"]
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123 - no loop here
        return [int(child) for child in file.read().split()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("node", "list", "--name", "nope"), "there is no cluster 'nope'"),
        (("node", "stop", "node-9", "--name", "dev"), "there is no node 'node-9'; there are: node-1"),
        (("node", "drain", "node-9", "--name", "dev"), "there is no node 'node-9'; there are: node-1"),
    ],
)
def test_what_is_wrong_with_a_node_is_said(program: Program, arguments: tuple[str, ...], said: str) -> None:
    """Errors are one sentence, with exit code 1."""
    program.run("cluster", "up", "--name", "dev")
    result = program.run("cluster", *arguments)
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_nodes_of_a_cluster_that_is_down_cannot_be_asked_for(program: Program) -> None:
    """The error has the command that starts the cluster."""
    program.run("cluster", "up", "--name", "dev", "--nodes", "0")
    program.run("cluster", "down", "--name", "dev")
    result = program.run("cluster", "node", "list", "--name", "dev")
    assert "cluster 'dev' is not running; start it with `navarch cluster up --name dev`" in result.stderr


async def test_nodes_that_do_not_join_are_not_awaited_for_ever(cluster: Cluster, tmp_path: Path) -> None:
    """The error has the number of ready nodes and the log file; heartbeats before the start do not count."""
    folder = ClusterFolder(tmp_path, "dev")
    folder.make()
    folder.choose(None, 3)
    with pytest.raises(ConfigError, match=rf"2 of its 3 nodes are ready after 0\.2 s; see {folder.log} for the reason"):
        await wait_until_ready(cluster.client, folder, None, 0.2)
    later = cluster.client.clock.now() + timedelta(minutes=1)
    with pytest.raises(ConfigError, match=r"0 of its 3 nodes are ready"):
        await wait_until_ready(cluster.client, folder, later, 0.2)
