"""A test can give an operator few permissions, failing requests, passing time and failing nodes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import TypeVar

import pytest

from memcached_operator.api.cache.v1alpha1.memcached import Memcached, MemcachedSpec
from navarch import Context, Endpoints, ObjectMeta, Operator, Quantity, Result
from navarch.client import MergePatch, Request
from navarch.errors import Conflict, InvalidValueError, NavarchError
from navarch.k8s.apps.v1 import Deployment, StatefulSet, StatefulSetSpec
from navarch.k8s.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from navarch.k8s.core.v1 import (
    ConfigMap,
    Container,
    Node,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    PodSpec,
    PodTemplateSpec,
    VolumeResourceRequirements,
)
from navarch.k8s.meta.v1 import LabelSelector
from navarch.operator import load_operator
from navarch.testing import Cluster, faulty

T = TypeVar("T")
memcached_operator = load_operator("memcached_operator")


async def test_operator_with_its_own_rights_does_its_work(cluster: Cluster) -> None:
    """The declared permissions suffice, from the CRD to the Lease."""
    client = await cluster.client_for(memcached_operator)
    async with cluster.run(memcached_operator, client=client):
        await cluster.apply(Memcached(name="cache", spec=MemcachedSpec(size=2)))
        await cluster.until(Memcached, "cache", lambda it: len(it.status.nodes) == 2)
    account = "system:serviceaccount:default:memcached-operator"
    assert cluster.audit.records(user=account, verb="patch", resource="deployments")


async def test_operator_with_its_own_rights_fails_at_what_it_does_not_declare(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator fails in the test as in production; the log has the remedy."""
    greedy = Operator("greedy")

    @greedy.controller(ConfigMap, reads=(Pod,))
    async def reconcile(config: ConfigMap, ctx: Context) -> None:
        await ctx.delete(Pod, "a")

    async with cluster.run(greedy, client=await cluster.client_for(greedy)):
        await cluster.create(ConfigMap(name="a"))
        await cluster.eventually(lambda: _words(caplog), lambda words: "cannot delete resource" in words)
    assert "Operator(uses=(Uses(...),))" in await _words(caplog)


async def _words(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(caplog.messages)


async def test_requests_fail_as_the_test_says(cluster: Cluster) -> None:
    """The operator retries; other clients are served."""
    left = [Conflict("somebody was faster", code=409) for _ in range(3)]

    def fault(request: Request) -> NavarchError | None:
        return left.pop() if left and request.method == "PATCH" and "/deployments/" in request.path else None

    async with cluster.run(memcached_operator, client=faulty(cluster.client, fault)):
        await cluster.apply(Memcached(name="cache"))
        await cluster.until(Deployment, "cache", lambda it: it.spec.replicas == 1)
    assert not left


async def test_operator_runs_twice_as_two_replicas(cluster: Cluster) -> None:
    """One replica takes over when the other ends; their endpoints do not conflict."""
    replicated, seen = Operator("replicated", endpoints=Endpoints(health="127.0.0.1:1", metrics=None)), list[str]()

    @replicated.controller(ConfigMap)
    async def reconcile(config: ConfigMap, ctx: Context) -> None:
        seen.append(config.name)

    async with AsyncExitStack() as first, cluster.run(replicated):
        await first.enter_async_context(cluster.run(replicated))
        await cluster.create(ConfigMap(name="a"))
        await cluster.eventually(lambda: _of(seen), lambda it: "a" in it)
        await first.aclose()
        await cluster.create(ConfigMap(name="b"))
        await cluster.eventually(lambda: _of(seen), lambda it: "b" in it)
    assert replicated.endpoints is not None


async def test_time_passes_for_operator_and_cluster(cluster: Cluster) -> None:
    """A reconcile that is due after a minute runs, and a CronJob creates its Job."""
    times: list[datetime] = []
    patient = Operator("patient")

    @patient.controller(CronJob)
    async def reconcile(found: CronJob, ctx: Context) -> Result:
        times.append(ctx.now())
        return Result(after=60)

    pod = PodTemplateSpec(spec=PodSpec(containers=[Container(name="main", image="pause")], restart_policy="Never"))
    spec = CronJobSpec(schedule="* * * * *", job_template=JobTemplateSpec(spec=JobSpec(template=pod)))
    async with cluster.run(patient):
        await cluster.create(CronJob(name="often", spec=spec))
        await cluster.eventually(lambda: _of(times), lambda seen: len(seen) == 1, what="the first reconcile")
        await cluster.pass_time(70)
        await cluster.eventually(lambda: _of(times), lambda seen: len(seen) == 2, what="the second reconcile")
        await cluster.eventually(lambda: cluster.list(Job), bool)
    assert timedelta(seconds=60) <= times[1] - times[0] < timedelta(seconds=70)


async def _of(seen: list[T]) -> list[T]:
    return seen


@pytest.mark.cluster(simulated=2)
async def test_pods_with_claims_are_ready_on_simulated_nodes(cluster: Cluster) -> None:
    """Each pod has a volume on its node, and finds it again after a restart."""
    size = VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    claim = PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=size)
    pod = PodSpec(containers=[Container(name="main", image="etcd")])
    spec = StatefulSetSpec(
        replicas=3,
        service_name="store",
        selector=LabelSelector(match_labels={"app": "store"}),
        template=PodTemplateSpec(metadata=ObjectMeta(labels={"app": "store"}), spec=pod),
        volume_claim_templates=[PersistentVolumeClaim(name="data", spec=claim)],
    )
    await cluster.create(StatefulSet(name="store", spec=spec))
    await cluster.until(StatefulSet, "store", lambda it: it.status.ready_replicas == 3)
    before = await cluster.get(Pod, "store-1")
    await cluster.delete(Pod, "store-1")
    again = lambda it: it.metadata.uid != before.metadata.uid and it.spec.node_name  # noqa: E731 - it is shown
    assert (await cluster.until(Pod, "store-1", again)).spec.node_name == before.spec.node_name


@pytest.mark.cluster(nodes=1)
async def test_node_is_switched_off_by_an_annotation(cluster: Cluster) -> None:
    """Its processes end at once."""
    await cluster.create(Pod(name="a", spec=PodSpec(containers=[Container(name="main", image="memcached")])))
    pod = await cluster.until(Pod, "a", lambda it: it.status.phase == "Running")
    await cluster.eventually(lambda: _answers(pod), bool)
    off = MergePatch({"metadata": {"annotations": {"navarch.dev/power": "off"}}})
    await cluster.client.patch(Node, pod.spec.node_name or "", off)
    await cluster.eventually(lambda: _answers(pod), lambda answers: not answers)
    with pytest.raises(InvalidValueError, match="simulated nodes"):
        await cluster.pass_time(60)


async def _answers(pod: Pod) -> bool:
    try:
        _, writer = await asyncio.open_connection(pod.status.pod_ip, 11211)
    except OSError:
        return False
    writer.close()
    return True
