"""A node is lost with all controllers around it: minutes of Kubernetes' patience, in virtual time."""

from __future__ import annotations

from cluster.nodes.simulated.worlds import World, ready, world
from navarch._base.background import Background
from navarch.api import ObjectMeta
from navarch.cluster.controllers.manager import ControllerManager
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector

LABELS = {"app": "web"}
LOST = "simulated-1"
TURNS = 40


async def pods(here: World) -> list[Pod]:
    return [pod async for pod in here.client.list(Pod)]


async def until(here: World, seconds: float, count: int, away_from: str = "") -> list[Pod]:
    """The ready pods, once there are so many, none of them to go and none on that node."""
    for _ in range(TURNS):
        found = [
            pod
            for pod in await pods(here)
            if ready(pod) and not pod.metadata.deletion_timestamp and pod.spec.node_name != away_from
        ]
        if len(found) == count:
            return found
        await here.clock.advance(seconds)
    raise AssertionError(f"expected {count} ready pods within {TURNS * seconds:g} s, got {len(found)}")


async def test_pods_of_a_lost_node_are_replaced_elsewhere() -> None:
    """They are replaced after 40 seconds without a heartbeat and five minutes of toleration, as in Kubernetes."""
    async with world(3) as here:
        plane = Background()
        plane.start(ControllerManager(here.client).run(), "control plane")
        try:
            template = PodTemplateSpec(
                metadata=ObjectMeta(labels=LABELS), spec=PodSpec(containers=[Container(name="main", image="none")])
            )
            spec = DeploymentSpec(replicas=6, selector=LabelSelector(match_labels=LABELS), template=template)
            await here.client.create(Deployment(name="web", spec=spec))
            before = await until(here, 1, 6)
            lost = {pod.name for pod in before if pod.spec.node_name == LOST}
            assert len(lost) == 2
            here.nodes.kill(LOST)
            killed = here.clock.monotonic()
            await until(here, 20, 6, away_from=LOST)
            assert 300 < here.clock.monotonic() - killed < 400
            assert lost < {pod.name for pod in await pods(here)}, (
                "expected pods of a dead node to stay until it returns"
            )
            here.nodes.restore(LOST)
            await here.clock.advance(10)
            assert not lost & {pod.name for pod in await pods(here)}
        finally:
            await plane.stop()
