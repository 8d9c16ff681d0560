"""One part of a cluster that fails is seen, restarted, and harms no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cluster.embedded.test_reliability import deployment
from navarch.cluster.controllers.scheduling.scheduler import Scheduler
from navarch.cluster.embedded import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.https_front import serve_https
from navarch.cluster.nodes.network.network import ClusterNetwork
from navarch.cluster.nodes.node_status import Heartbeat
from navarch.cluster.nodes.pods.sandbox import PodSandbox
from navarch.cluster.server.wire.request import ApiRequest
from navarch.k8s.core.v1 import Container, Event, Pod, PodSpec
from navarch.testing import Cluster

SECONDS = 60.0


class Stumbling:
    """Fails so many times, and then does what it stands for."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> None:
        if self.left:
            self.left -= 1
            raise ValueError("overlooked")


@asynccontextmanager
async def with_a_node() -> AsyncIterator[tuple[Cluster, EmbeddedCluster]]:
    async with EmbeddedCluster(components=ComponentOptions(nodes=1)) as embedded, serve_https(embedded) as access:
        yield Cluster(embedded.client(), embedded, access), embedded


async def page(embedded: EmbeddedCluster, path: str) -> tuple[int, list[str]]:
    name, _, query = path.partition("?")
    headers = {"authorization": f"Bearer {embedded.token}"}
    request = ApiRequest(method="GET", path=name, query={query: [""]} if query else {}, headers=headers)
    reply = await embedded.server.handle(request)
    return reply.status, reply.body.decode().splitlines()


async def running_pods(cluster: Cluster) -> int:
    return sum(pod.status.phase == "Running" for pod in await cluster.list(Pod))


async def test_a_scheduler_that_fails_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Health names it and why, with how often it was restarted; the API server is ready all the while."""
    stumble, run = Stumbling(2), Scheduler.run

    async def stumbling(self: Scheduler) -> None:
        stumble()
        await run(self)

    monkeypatch.setattr(Scheduler, "run", stumbling)
    async with with_a_node() as (cluster, embedded):
        await cluster.eventually(
            lambda: page(embedded, "/healthz/scheduler"), lambda answer: answer[0] == 500, timeout=SECONDS
        )
        code, lines = await page(embedded, "/healthz?verbose")
        (line,) = [line for line in lines if line.startswith("[-]")]
        assert (code, lines[-1]) == (500, "healthz check failed")
        assert line.startswith("[-]scheduler failed: backing off: ValueError: overlooked (test_supervision.py:")
        assert await page(embedded, "/readyz") == (200, ["ok"])
        assert await page(embedded, "/livez/scheduler") == (404, ["404 page not found"])
        await cluster.apply(deployment("web", 1, "exec sleep 86403"))
        await cluster.eventually(lambda: running_pods(cluster), lambda count: count == 1, timeout=SECONDS)
        assert "[+]scheduler ok (restarts: 2)" in (await page(embedded, "/healthz?verbose"))[1]
        assert 'navarch_task_restarts_total{task="scheduler"} 2.0' in (await page(embedded, "/metrics"))[1]


async def test_parts_of_a_node_that_fail_do_not_end_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a heartbeat nor the proxies of services take the node down with them."""
    beat, follow = Heartbeat.run, ClusterNetwork._follow
    stumble, trip = Stumbling(1), Stumbling(2)

    async def stumbling(self: Heartbeat) -> None:
        stumble()
        await beat(self)

    async def tripping(self: ClusterNetwork) -> None:
        trip()
        await follow(self)

    monkeypatch.setattr(Heartbeat, "run", stumbling)
    monkeypatch.setattr(ClusterNetwork, "_follow", tripping)
    async with with_a_node() as (cluster, embedded):
        await cluster.apply(deployment("web", 1, "exec sleep 86404"))
        await cluster.eventually(lambda: running_pods(cluster), lambda count: count == 1, timeout=SECONDS)
        await cluster.eventually(lambda: page(embedded, "/healthz"), lambda answer: answer[0] == 200, timeout=SECONDS)
        lines = (await page(embedded, "/healthz?verbose"))[1]
        assert {"[+]node-1 ok", "[+]node-1/heartbeat ok (restarts: 1)", "[+]service-proxy ok (restarts: 2)"} <= {*lines}


async def test_a_pod_that_its_node_cannot_handle_is_told_and_can_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event says why, it is tried again, other pods run, and it goes when it is deleted."""
    prepare = PodSandbox.prepare

    def stumbling(self: PodSandbox) -> None:
        if self.pod.name == "odd":
            raise ValueError("overlooked")
        prepare(self)

    monkeypatch.setattr(PodSandbox, "prepare", stumbling)
    async with with_a_node() as (cluster, embedded):
        container = Container(name="main", image="busybox", command=["sleep", "86405"])
        for name in ("odd", "good"):
            await cluster.apply(
                Pod(name=name, spec=PodSpec(containers=[container], termination_grace_period_seconds=0))
            )
        await cluster.eventually(lambda: running_pods(cluster), lambda count: count == 1, timeout=SECONDS)

        async def told() -> list[str]:
            return [event.message or "" for event in await cluster.list(Event) if event.reason == "FailedSync"]

        await cluster.eventually(told, lambda notes: any("ValueError: overlooked" in note for note in notes))
        await cluster.delete(Pod, "odd")
        await cluster.eventually(
            lambda: cluster.list(Pod), lambda pods: [pod.name for pod in pods] == ["good"], timeout=SECONDS
        )
        assert await page(embedded, "/healthz") == (200, ["ok"])
