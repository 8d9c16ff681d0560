"""A day passes in a moment."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from navarch import Context, Operator, Result
from navarch._base.movable import MovableClock
from navarch.client import Client
from navarch.cluster.embedded import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.k8s.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import ConfigMap, Container, Node, PodSpec, PodTemplateSpec
from navarch.testing import Cluster

DAY = 86_400


@pytest.mark.cluster(simulated=2)
async def test_every_timer_of_a_day_comes_at_its_time(cluster: Cluster) -> None:
    """A reconcile runs every hour and a CronJob every six; afterwards nodes are ready and the operator leads."""
    times, daily = list[datetime](), Operator("daily")

    @daily.controller(ConfigMap)
    async def reconcile(found: ConfigMap, ctx: Context) -> Result | None:
        if found.name != "clock":
            return None
        times.append(ctx.now())
        return Result(after=3600)

    pod = PodTemplateSpec(spec=PodSpec(containers=[Container(name="main", image="pause")], restart_policy="Never"))
    spec = CronJobSpec(schedule="0 */6 * * *", job_template=JobTemplateSpec(spec=JobSpec(template=pod)))
    async with cluster.run(daily):
        await cluster.create(CronJob(name="often", spec=spec))
        await cluster.create(ConfigMap(name="clock"))
        await cluster.until(ConfigMap, "clock", lambda _: times)
        await cluster.pass_time(DAY)
        await cluster.until(ConfigMap, "clock", lambda _: len(times) == 25)
        jobs = await cluster.eventually(lambda: cluster.list(Job), lambda found: len(found) == 4)
        lease = await cluster.get(Lease, "daily")
        ready = await cluster.list(Node)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(timedelta(hours=1) <= gap < timedelta(hours=1, seconds=10) for gap in gaps)
    assert all(job.metadata.creation_timestamp for job in jobs)
    assert all(each.type != "Ready" or each.status == "True" for node in ready for each in node.status.conditions or ())
    assert lease.spec.holder_identity
    assert lease.spec.renew_time is not None


@pytest.mark.cluster(simulated=3)
async def test_idle_heartbeats_are_left_out_of_a_long_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle cluster wakes about as often in a day as in two minutes."""
    moves = 0
    move = MovableClock._move

    def counted(clock: MovableClock, seconds: float, timelines: object) -> None:
        nonlocal moves
        moves += 1
        move(clock, seconds, timelines)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(MovableClock, "_move", counted)
    idle = Operator("idle")

    @idle.controller(ConfigMap)
    async def reconcile(found: ConfigMap, ctx: Context) -> None: ...

    async with cluster.run(idle):
        await cluster.until(Lease, "idle", bool)
        await cluster.pass_time(120)
        two_minutes, moves = moves, 0
        await cluster.pass_time(DAY)
    assert moves < 2 * two_minutes + 50


async def test_node_that_has_stopped_is_found_in_a_long_time() -> None:
    """Heartbeats are skipped only after stopped nodes were found."""
    clock = MovableClock()
    async with EmbeddedCluster(clock=clock, components=ComponentOptions(simulated=1)) as cluster:
        client = cluster.client()
        name = await node_whose_ready_is(client, "True")
        assert cluster.simulated is not None
        cluster.simulated.kill(name)
        await clock.advance(DAY)
        assert await node_whose_ready_is(client, "Unknown") == name


async def node_whose_ready_is(client: Client, status: str) -> str:
    """The name of the first node whose condition Ready has that status, once there is one."""
    async with asyncio.timeout(30):
        while True:
            for node in await client.list(Node):
                if any(each.type == "Ready" and each.status == status for each in node.status.conditions or ()):
                    return node.name
            await client.clock.sleep(0.05)
