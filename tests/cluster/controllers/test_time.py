"""Workloads follow the clock, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from conformance.controllers.making import SELECTOR, template
from navarch._base.clock import ManualClock
from navarch.api import format_time
from navarch.client import Client, MergePatch
from navarch.cluster.controllers.manager import builtin_operator
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec
from navarch.k8s.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from navarch.k8s.core.v1 import Pod
from navarch.operator import serve

_A_MOMENT = 0.5


class Later:
    """A cluster whose time stands still until it is told to pass."""

    def __init__(self, client: Client, clock: ManualClock) -> None:
        self.client = client
        self.clock = clock

    async def passes(self, seconds: float = _A_MOMENT) -> None:
        """So much time passes, and a moment more for what follows from it."""
        for length in (seconds, _A_MOMENT):
            await self.clock.advance(length)
            await self.clock.settle()

    async def pods(self) -> list[Pod]:
        return [pod async for pod in self.client.list(Pod)]

    async def tell(self, pod: Pod, phase: str, **conditions: str) -> None:
        """The node says so."""
        told = [
            {"type": kind, "status": status, "lastTransitionTime": format_time(self.clock.now())}
            for kind, status in conditions.items()
        ]
        changes = MergePatch({"status": {"phase": phase, "conditions": told}})
        await self.client.patch(Pod, pod.name, changes, subresource="status")
        await self.passes()


@asynccontextmanager
async def later() -> AsyncIterator[Later]:
    clock = ManualClock()
    async with EmbeddedCluster(clock=clock) as cluster, asyncio.TaskGroup() as group:
        here = Later(cluster.client(), clock)
        running = group.create_task(serve(here.client, builtin_operator()))
        await here.passes()
        yield here
        running.cancel()


async def test_cron_job_makes_a_job_each_time_it_is_due() -> None:
    """Named by the minute, one after the other."""
    job = JobTemplateSpec(spec=JobSpec(template=template(restart_policy="Never")))
    async with later() as here:
        await here.client.create(CronJob(name="tick", spec=CronJobSpec(schedule="* * * * *", job_template=job)))
        await here.passes(50)
        assert await names(here) == []
        await here.passes(10)
        first = int(here.clock.now().timestamp()) // 60
        assert await names(here) == [f"tick-{first}"]
        await here.passes(60)
        assert await names(here) == [f"tick-{first}", f"tick-{first + 1}"]


async def names(here: Later) -> list[str]:
    return sorted([job.name async for job in here.client.list(Job)])


async def test_pods_that_fail_are_replaced_later_each_time() -> None:
    """After ten seconds, then twenty."""
    spec = JobSpec(template=template(restart_policy="Never"), backoff_limit=5)
    async with later() as here:
        await here.client.create(Job(name="work", spec=spec))
        await here.passes()
        for count, delay in enumerate((10, 20), start=1):
            (pod,) = [pod for pod in await here.pods() if pod.status.phase == "Pending"]
            await here.tell(pod, "Failed", Ready="False")
            await here.passes(delay - 3)
            assert len(await here.pods()) == count
            await here.passes(3)
            assert len(await here.pods()) == count + 1


async def test_finished_job_goes_in_its_time() -> None:
    """Counted from its end."""
    spec = JobSpec(template=template(restart_policy="Never"), ttl_seconds_after_finished=30)
    async with later() as here:
        await here.client.create(Job(name="work", spec=spec))
        await here.passes()
        (pod,) = await here.pods()
        await here.tell(pod, "Succeeded")
        await here.passes(25)
        (job,) = [job async for job in here.client.list(Job)]
        assert job.metadata.deletion_timestamp is None
        await here.passes(6)
        left = [job async for job in here.client.list(Job)]
        assert all(job.metadata.deletion_timestamp is not None for job in left)


async def test_pod_counts_as_available_when_its_time_has_come() -> None:
    """Not before, though nothing happens meanwhile."""
    spec = ReplicaSetSpec(replicas=1, selector=SELECTOR, template=template(), min_ready_seconds=20)
    async with later() as here:
        await here.client.create(ReplicaSet(name="web", spec=spec))
        await here.passes()
        (pod,) = await here.pods()
        await here.tell(pod, "Running", Ready="True")
        await here.passes(15)
        assert (await here.client.get(ReplicaSet, "web")).status.available_replicas is None
        await here.passes(6)
        assert (await here.client.get(ReplicaSet, "web")).status.available_replicas == 1


async def test_rollout_that_stands_still_is_told_when_its_deadline_has_passed() -> None:
    """Not before; and progress begins the time anew."""
    spec = DeploymentSpec(replicas=2, selector=SELECTOR, template=template(), progress_deadline_seconds=30)
    async with later() as here:
        await here.client.create(Deployment(name="web", spec=spec))
        await here.passes(25)
        assert await progress(here) == ("True", "ReplicaSetUpdated")
        (first, _) = await here.pods()
        await here.tell(first, "Running", Ready="True")
        await here.passes(25)
        assert await progress(here) == ("True", "ReplicaSetUpdated")
        await here.passes(8)
        assert await progress(here) == ("False", "ProgressDeadlineExceeded")


async def progress(here: Later) -> tuple[str, str | None]:
    found = await here.client.get(Deployment, "web")
    return next((each.status, each.reason) for each in found.status.conditions or () if each.type == "Progressing")


async def test_time_of_a_job_ends_when_it_is_over() -> None:
    """Counted from its start, though its pod does nothing."""
    spec = JobSpec(template=template(restart_policy="Never"), active_deadline_seconds=30)
    async with later() as here:
        await here.client.create(Job(name="work", spec=spec))
        await here.passes(25)
        assert not (await here.client.get(Job, "work")).status.conditions
        await here.passes(8)
        found = await here.client.get(Job, "work")
        assert [each.type for each in found.status.conditions or ()] == ["FailureTarget", "Failed"]
        assert found.status.start_time is not None
        assert here.clock.now() - found.status.start_time < timedelta(seconds=40)
