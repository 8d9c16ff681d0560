"""Simulated nodes on either engine: they see a cluster through the client alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from navarch._base.tasks import TaskSet
from navarch.client import Client, WatchOptions
from navarch.cluster.nodes.simulated import LIFE, SimulatedNodes
from navarch.errors import AlreadyExists, NotFound
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import Container, Node, Pod, PodSpec, ServiceAccount

NODE = "simulated-for-a-test"
SECONDS = 60
CRASHES = '{"stages": [{"becomes": "running"}, {"becomes": "ready", "after": 0.2}, {"becomes": "exited", "after": 0.2, "exitCode": 3}]}'


@contextlib.asynccontextmanager
async def simulated(client: Client) -> AsyncIterator[SimulatedNodes]:
    """One node that is there while the block lasts."""
    nodes, beside = SimulatedNodes(client, [NODE]), TaskSet()
    beside.start(nodes.run(), "simulated nodes")
    try:
        async with asyncio.timeout(SECONDS):
            await nodes.ready.wait()
        yield nodes
    finally:
        await beside.stop()
        with contextlib.suppress(NotFound):
            await client.delete(Node, NODE)
        with contextlib.suppress(NotFound):
            await client.delete(Lease, NODE, namespace="kube-node-lease")


async def create(client: Client, annotations: dict[str, str]) -> str:
    """A pod that is bound to the node from the beginning, and is not started again; its first version."""
    with contextlib.suppress(AlreadyExists):
        await client.create(ServiceAccount(name="default"))
    spec = PodSpec(containers=[Container(name="main", image="none")], node_name=NODE, restart_policy="Never")
    spec.automount_service_account_token = False
    made = await client.create(Pod(name="pod", annotations=annotations, spec=spec))
    return made.metadata.resource_version


async def until(client: Client, holds: Callable[[str, Pod], object], what: str, *, since: str | None = None) -> Pod:
    """The pod, once that holds of it and of what happened to it, from some version on or as it is."""
    watch = client.watch(Pod, resource_version=since, options=WatchOptions(initial=since is None))
    try:
        async with asyncio.timeout(SECONDS), watch as events:
            async for event in events:
                if holds(event.type, event.object):
                    return event.object
    except TimeoutError:
        raise AssertionError(f"expected {what} within {SECONDS} s") from None
    raise AssertionError(f"expected {what}, got the end of the watch")


def ready(_: str, pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())


async def test_pod_becomes_ready_and_goes(client: Client) -> None:
    """As on any node: with an address, and away when it is deleted."""
    async with simulated(client):
        await create(client, {})
        pod = await until(client, ready, "a ready pod")
        assert (pod.status.phase, bool(pod.status.pod_ip)) == ("Running", True)
        ending = await client.delete(Pod, "pod")
        assert ending is not None
        since = ending.metadata.resource_version
        await until(client, lambda kind, _: kind == "DELETED", "the end of the pod", since=since)


async def test_pod_walks_through_its_stages(client: Client) -> None:
    """What the server accepts of each change of the status is what was meant."""
    async with simulated(client):
        first = await create(client, {LIFE: CRASHES})
        await until(client, ready, "a ready pod", since=first)
        pod = await until(client, lambda _, pod: pod.status.phase == "Failed", "a failed pod")
        (status,) = pod.status.container_statuses or []
        assert status.state is not None
        assert status.state.running is None
        assert status.state.terminated is not None
        assert (status.state.terminated.exit_code, status.ready) == (3, False)
        conditions = {each.type: (each.status, each.reason) for each in pod.status.conditions or ()}
        assert conditions["Ready"] == ("False", "PodFailed")
