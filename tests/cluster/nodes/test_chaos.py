"""Nodes that are killed, cut off and frozen while pods come and go: in the end all is as it should be."""

from __future__ import annotations

import random
from contextlib import suppress

from cluster.nodes.machines import is_ready, long_while, processes_with, shell
from navarch.cluster.embedded import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.nodes.kubelet import Kubelet
from navarch.errors import NotFound
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import Pod, PodSpec, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector
from navarch.testing.cluster import Cluster

_PODS = 6
_STEPS = 25


def _deployment(mark: str) -> Deployment:
    """Pods that fork a process which leaves their session."""
    script = f"trap 'exit 0' TERM; (setsid {mark} &); while :; do sleep 0.2; done"
    template = PodTemplateSpec(spec=PodSpec(containers=[shell(script)], termination_grace_period_seconds=2))
    template.metadata.labels = {"app": "web"}
    selector = LabelSelector(match_labels={"app": "web"})
    return Deployment(name="web", spec=DeploymentSpec(replicas=_PODS, selector=selector, template=template))


async def _disturb(cluster: Cluster, nodes: list[Kubelet], rng: random.Random) -> None:
    """One fault, and what it takes to get over it."""
    node, pods = rng.choice(nodes), list(await cluster.list(Pod))
    match rng.choice(["delete", "delete", "kill", "cut off", "freeze"]):
        case "delete" if pods:
            with suppress(NotFound):
                await cluster.client.delete(Pod, rng.choice(pods).name, grace_seconds=rng.choice([None, 0, 1]))
        case "kill" if node.ready.is_set():
            await node.kill()
        case "cut off":
            await node.cut_off()
            await _settle(cluster)
            await node.cut_off(cut=False)
        case "freeze" if node.ready.is_set():
            await node.freeze()
            await _settle(cluster)
            await node.freeze(frozen=False)
    await _settle(cluster)


async def _settle(cluster: Cluster) -> None:
    """Long enough for something to happen."""
    await cluster.client.clock.sleep(0.05)


async def test_pods_survive_their_nodes() -> None:
    """Every pod is there and ready again, nothing runs that no pod knows of, and nothing is left in the end."""
    mark, rng = f"sleep {long_while()}", random.Random(1)
    async with EmbeddedCluster(components=ComponentOptions(nodes=2)) as embedded:
        cluster = Cluster(embedded.client(), embedded)
        await cluster.create(_deployment(mark))
        await cluster.eventually(lambda: _all(cluster), lambda pods: len(pods) == _PODS, timeout=60)
        for _ in range(_STEPS):
            await _disturb(cluster, list(embedded.nodes.values()), rng)
        await cluster.eventually(lambda: _all(cluster), _are_well, timeout=120, what=f"{_PODS} pods, all ready")
        await cluster.eventually(lambda: _running(mark), lambda count: count == _PODS, timeout=120)
    assert await _running(mark) == 0


async def _all(cluster: Cluster) -> list[Pod]:
    return list(await cluster.list(Pod))


def _are_well(pods: list[Pod]) -> bool:
    return len(pods) == _PODS and all(is_ready(pod) and not pod.metadata.deletion_timestamp for pod in pods)


async def _running(mark: str) -> int:
    return len(processes_with("\0".join(mark.split())))
