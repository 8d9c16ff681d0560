"""`kubectl rollout` and `kubectl scale`, unchanged, on a Deployment, a StatefulSet and a DaemonSet."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import rig
from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import SELECTOR, template
from conformance.controllers.watching import active_pods, until
from navarch.client import Client, Config
from navarch.k8s.apps.v1 import DaemonSet, DaemonSetSpec, Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec
from navarch.k8s.core.v1 import Node, Toleration
from navarch.testing.cluster import Cluster
from rig.process import CLEAN_ENVIRONMENT
from rig.programs import KUBECTL

Told = Callable[..., Awaitable[str]]

POOL = "of-kubectl"

_SECONDS = 90
"""More than `kubectl rollout status` is given."""
THROUGH = "--timeout=60s"


@pytest.fixture
def kubectl(
    client: Client, config: Config, rig_or_none: rig.Cluster | None, embedded: Cluster | None, tmp_path: Path
) -> Told:
    """Runs kubectl in the test's namespace, and gives what it printed."""
    if not KUBECTL.path.exists():
        pytest.skip("kubectl was not built: make rig")
    path = rig_or_none.kubeconfig if rig_or_none is not None else tmp_path / "kubeconfig.json"
    if embedded is not None:
        assert embedded.access is not None
        path.write_bytes(embedded.access.kubeconfig_file())
    # What it remembers of a server goes by the address, which may have been another cluster's.
    environment = {**CLEAN_ENVIRONMENT, "KUBECACHEDIR": str(tmp_path / "cache")}

    async def told(*arguments: str) -> str:
        command = [str(KUBECTL.path), f"--kubeconfig={path}", f"--namespace={client.options.namespace}", *arguments]
        done = await asyncio.to_thread(
            subprocess.run, command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    return told


def workload(kind: str) -> Any:
    spec: dict[str, Any] = {"replicas": 2, "selector": SELECTOR, "template": template()}
    if kind == "deployment":
        return Deployment(name="web", spec=DeploymentSpec(**spec))
    if kind == "daemonset":
        somewhere: dict[str, Any] = {"node_selector": {"pool": POOL}, "tolerations": [Toleration(operator="Exists")]}
        return DaemonSet(name="web", spec=DaemonSetSpec(selector=SELECTOR, template=template(**somewhere)))
    return StatefulSet(name="web", spec=StatefulSetSpec(**spec, service_name="web"))


async def images(client: Client) -> set[str | None]:
    return {pod.spec.containers[0].image for pod in await active_pods(client)}


@pytest.fixture
async def node(client: Client) -> AsyncIterator[None]:
    """One node for daemons."""
    await client.create(Node(name=POOL, labels={"pool": POOL}))
    yield
    await client.delete(Node, POOL)


@pytest.mark.parametrize(
    "kind",
    [
        "deployment",
        pytest.param("statefulset", marks=pytest.mark.long),
        pytest.param("daemonset", marks=pytest.mark.long),
    ],
)
async def test_kubectl_rolls_out_and_back(
    client: Client, kubelet: Kubelet, kubectl: Told, node: None, kind: str
) -> None:
    """`status` waits until it is through, `history` has both versions, and `undo` brings the first one back."""
    await client.create(workload(kind))
    await kubectl("rollout", "status", f"{kind}/web", THROUGH)
    await kubectl("set", "image", f"{kind}/web", "main=second")
    through = await kubectl("rollout", "status", f"{kind}/web", THROUGH)
    assert re.search("successfully rolled out|roll out complete", through)
    assert await images(client) == {"second"}
    history = await kubectl("rollout", "history", f"{kind}/web")
    assert re.findall(r"^(\d+) ", history, re.MULTILINE) == ["1", "2"]
    await kubectl("rollout", "undo", f"{kind}/web")
    await kubectl("rollout", "status", f"{kind}/web", THROUGH)
    await until(lambda: images(client), lambda found: found == {"first"}, "the first version")
    history = await kubectl("rollout", "history", f"{kind}/web")
    assert re.findall(r"^(\d+) ", history, re.MULTILINE) == ["2", "3"]


@pytest.mark.parametrize("kind", ["deployment", pytest.param("statefulset", marks=pytest.mark.long)])
async def test_kubectl_scales_and_restarts(client: Client, kubelet: Kubelet, kubectl: Told, kind: str) -> None:
    """Every pod is another one after a restart."""
    await client.create(workload(kind))
    await kubectl("scale", f"{kind}/web", "--replicas=3")
    await until(lambda: active_pods(client), lambda pods: len(pods) == 3, "three pods")
    await kubectl("rollout", "status", f"{kind}/web", THROUGH)
    before = {pod.metadata.uid for pod in await active_pods(client)}
    await kubectl("rollout", "restart", f"{kind}/web")
    await kubectl("rollout", "status", f"{kind}/web", THROUGH)
    await until(
        lambda: active_pods(client),
        lambda pods: len(pods) == 3 and before.isdisjoint(pod.metadata.uid for pod in pods),
        "three other pods",
    )


async def test_kubectl_shows_a_workload_with_what_belongs_to_it(
    client: Client, kubelet: Kubelet, kubectl: Told
) -> None:
    """`get all` has the Deployment, its ReplicaSet and its pods; `describe` what happened to it."""
    await client.create(workload("deployment"))
    await kubectl("rollout", "status", "deployment/web", THROUGH)
    everything = await kubectl("get", "all")
    assert re.search(r"^deployment.apps/web +2/2 +2 +2 ", everything, re.MULTILINE)
    assert re.search(r"^replicaset.apps/web-\w+ +2 +2 +2 ", everything, re.MULTILINE)
    assert len(re.findall(r"^pod/web-\w+-\w+ +", everything, re.MULTILINE)) == 2

    async def described() -> str:
        return await kubectl("describe", "deployment", "web")

    await until(described, lambda text: re.search("ScalingReplicaSet.*Scaled up replica set web-", text), "its event")
