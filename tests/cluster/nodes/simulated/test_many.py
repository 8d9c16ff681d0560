"""Simulated nodes with everything around them, in real time."""

from __future__ import annotations

import pytest

from navarch.cluster.nodes.simulated.stages import LIFE
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.batch.v1 import Job, JobSpec
from navarch.k8s.core.v1 import Container, Node, Pod, PodSpec, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector
from navarch.testing.cluster import Cluster

LABELS = {"app": "web"}
EXITS = '{"stages": [{"becomes": "ready"}, {"becomes": "exited", "after": 0.1}]}'


def template(**more: str) -> PodTemplateSpec:
    found = PodTemplateSpec(spec=PodSpec(containers=[Container(name="main", image="none")]))
    found.metadata.labels = LABELS
    found.metadata.annotations = more
    return found


@pytest.mark.cluster(simulated=10)
async def test_deployment_becomes_available(cluster: Cluster) -> None:
    """Its pods are spread over the simulated nodes, and become ready."""
    spec = DeploymentSpec(replicas=100, selector=LabelSelector(match_labels=LABELS), template=template())
    await cluster.create(Deployment(name="web", spec=spec))
    await cluster.until(Deployment, "web", lambda found: found.status.available_replicas == 100, timeout=60)
    pods = [pod async for pod in cluster.list(Pod)]
    assert len([node async for node in cluster.list(Node)]) == 10
    assert len({pod.spec.node_name for pod in pods}) == 10
    assert len({pod.status.pod_ip for pod in pods}) == 100


@pytest.mark.cluster(simulated=2)
async def test_job_completes(cluster: Cluster) -> None:
    """The Job completes when its pods have exited as the annotation of its template declares."""
    made = template(**{LIFE: EXITS})
    made.spec.restart_policy = "Never"
    await cluster.create(Job(name="job", spec=JobSpec(completions=6, parallelism=3, template=made)))
    await cluster.until(Job, "job", lambda job: job.status.succeeded == 6, timeout=60)
