"""Numbers in a spec or a status do not set what a controller costs: others are answered and served meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from chaos.waiting import until_none
from navarch.api import Dynamic
from navarch.client import Client, MergePatch, connect
from navarch.k8s.batch.v1 import Job
from navarch.k8s.core.v1 import Endpoints, Pod, Service
from navarch.k8s.discovery.v1 import EndpointSlice
from security.attacked_cluster import AttackedCluster, attacked_cluster

MOST = 2**31 - 1
MEMORY = 256 * 2**20
"""What an attack may take on top of what the cluster has, in bytes: far more than it needs, far below what it asks for."""
SECONDS = 60.0
MANY = "many"
"""The namespace of the attacker, with room for a few pods."""
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}
TASK = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
SETS = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
INDEXED = {"completionMode": "Indexed", "completions": MOST, "template": TASK}


class Target(NamedTuple):
    """A cluster, and a client of it."""

    cluster: AttackedCluster
    client: Client


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    with attacked_cluster(simulated=2) as cluster:
        async with connect(cluster.config) as client:
            await made(client, "v1", "Namespace", MANY)
            await made(client, "v1", "ResourceQuota", "few", namespace=MANY, spec={"hard": {"pods": "10"}})
            yield Target(cluster, client)


async def made(client: Client, version: str, kind: str, name: str, *, namespace: str = "", **content: Any) -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    await client.create(Dynamic({"apiVersion": version, "kind": kind, "metadata": metadata, **content}))


async def until(holds: Callable[[], Awaitable[Any]], what: str) -> None:
    async def look() -> str | None:
        return None if await holds() else f"expected {what}"

    await until_none(look, seconds=SECONDS)


async def assert_served(target: Target, kind: str) -> None:
    """Another tenant's workload of the kind gets its pod, and the attack has not taken much memory."""
    version = "batch/v1" if kind == "Job" else "apps/v1"
    template = {**(TASK if kind == "Job" else TEMPLATE), "metadata": {"labels": {"of": "other"}}}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"of": "other"}}}
    await made(target.client, version, kind, "other", namespace="default", spec={**selector, "template": template})

    async def has_pod() -> bool:
        pods = await target.client.list(Pod, namespace="default", labels={"of": "other"})
        return any(pod.spec.node_name for pod in pods)

    await until(has_pod, f"a pod on a node of another {kind}")


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param("StatefulSet", {**SETS, "podManagementPolicy": "Parallel"}, id="parallel", marks=pytest.mark.long),
        pytest.param(
            "StatefulSet", {**SETS, "podManagementPolicy": "OrderedReady"}, id="ordered", marks=pytest.mark.long
        ),
        pytest.param("Deployment", {**SETS, "revisionHistoryLimit": MOST}, id="deployment"),
        pytest.param("ReplicaSet", SETS, id="replicaset", marks=pytest.mark.long),
    ],
)
async def test_two_billion_replicas_do_not_stop_the_cluster(target: Target, kind: str, spec: dict[str, Any]) -> None:
    """As many are made as there is room for, and nothing of the size of the number."""
    before = target.cluster.begin_peak()
    await made(target.client, "apps/v1", kind, "huge", namespace=MANY, spec={**spec, "replicas": MOST})

    async def begins() -> bool:
        return bool(await target.client.list(Pod, namespace=MANY))

    await until(begins, "a first pod")
    await assert_served(target, kind)
    assert target.cluster.peak() - before < MEMORY


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"parallelism": 5}, {}, id="completions"),
        pytest.param(
            {"parallelism": 0},
            {"completedIndexes": f"0-{MOST - 2}", "succeeded": MOST - 1},
            id="completed",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"parallelism": 0, "backoffLimitPerIndex": 1},
            {"failedIndexes": f"0-{MOST - 2}"},
            id="failed",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"parallelism": 0, "successPolicy": {"rules": [{"succeededIndexes": f"0-{MOST - 1}"}]}},
            {"completedIndexes": "0"},
            id="policy",
            marks=pytest.mark.long,
        ),
    ],
)
async def test_two_billion_indexes_do_not_stop_the_cluster(
    target: Target, spec: dict[str, Any], status: dict[str, Any]
) -> None:
    """Whether they are asked for, done, have failed or are to succeed."""
    before = target.cluster.begin_peak()
    await made(target.client, "batch/v1", "Job", "huge", namespace=MANY, spec={**INDEXED, **spec})
    if status:
        patch = MergePatch({"status": status})
        await target.client.patch(Job, "huge", patch, namespace=MANY, subresource="status")
    await assert_served(target, "Job")
    assert target.cluster.peak() - before < MEMORY


async def test_cost_of_many_ports_does_not_grow_with_the_pods(target: Target) -> None:
    """Twenty times as many pods behind thousands of ports take less than three times as long."""
    few = await cost_of_service(target, 4)
    many = await cost_of_service(target, 80)
    assert many < few * 3, f"expected about {few} s for 80 pods as for 4, got {many} s"


async def cost_of_service(target: Target, pods: int) -> float:
    """The processor time until a service with thousands of ports leads to so many pods."""
    client = target.client
    for number in range(pods):
        name, address = f"p{pods}-{number}", f"192.0.2.{number}"
        spec = {"containers": [{"name": "main", "image": "x"}], "schedulerName": "nobody"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"n": str(pods)}}, "spec": spec}
        await client.create(Dynamic(pod))
        status = {"podIP": address, "podIPs": [{"ip": address}]}
        await client.patch(Pod, name, MergePatch({"status": status}), subresource="status")
    before, name = target.cluster.cpu_seconds(), f"s{pods}"
    ports = [{"name": f"p{number}", "port": number} for number in range(1, 4001)]
    wanted = {"selector": {"n": str(pods)}, "publishNotReadyAddresses": True, "ports": ports}
    await made(client, "v1", "Service", name, spec=wanted)

    async def leads() -> bool:
        slices = await client.list(EndpointSlice, labels={"kubernetes.io/service-name": name})
        if sum(len(each.endpoints or ()) for each in slices) < pods:
            return False
        found = await client.list(Endpoints, fields={"metadata.name": name})
        return any(len(subset.addresses or ()) == pods for each in found for subset in each.subsets or ())

    await until(leads, f"a service that leads to {pods} pods")
    cost = target.cluster.cpu_seconds() - before
    await client.delete(Service, name)
    return cost
