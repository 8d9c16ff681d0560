"""Another object has the name that a version would get: the next name is tried, and that is written down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.controllers.making import SELECTOR, template
from conformance.controllers.watching import until
from navarch.client import Client
from navarch.cluster.controllers.manager import builtin_operator
from navarch.cluster.controllers.workloads.deployments.revisions import new_replica_set
from navarch.cluster.controllers.workloads.revision_history import hash_of
from navarch.k8s.apps.v1 import (
    ControllerRevision,
    Deployment,
    DeploymentSpec,
    ReplicaSet,
    ReplicaSetSpec,
    StatefulSet,
    StatefulSetSpec,
)
from navarch.k8s.meta.v1 import LabelSelector
from navarch.testing.cluster import Cluster

pytestmark = pytest.mark.cluster(controllers=False)

OTHERS = {"app": "other"}


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with cluster.run(builtin_operator()):
        yield cluster.client


async def test_deployment_takes_the_next_name(client: Client) -> None:
    """The ReplicaSet of somebody else stays as it is."""
    wanted = Deployment(name="web", spec=DeploymentSpec(replicas=2, selector=SELECTOR, template=template()))
    taken = new_replica_set(await client.using(dry_run=True).create(wanted)).name
    other = ReplicaSetSpec(replicas=0, selector=LabelSelector(match_labels=OTHERS), template=template(labels=OTHERS))
    await client.create(ReplicaSet(name=taken, labels=OTHERS, spec=other))
    await client.create(wanted)
    found = await until(
        lambda: client.get(Deployment, "web"), lambda found: found.status.replicas == 2, "two pods all the same"
    )
    assert found.status.collision_count == 1
    made = {each.name: each.spec.replicas async for each in client.list(ReplicaSet)}
    assert made.pop(taken) == 0
    assert list(made.values()) == [2]


async def test_stateful_set_takes_the_next_name(client: Client) -> None:
    """The same for versions that are kept as ControllerRevisions."""
    wanted = StatefulSet(name="web", spec=StatefulSetSpec(replicas=1, selector=SELECTOR, template=template()))
    defaulted = await client.using(dry_run=True).create(wanted)
    taken = f"web-{hash_of(defaulted.spec.template, 0)}"
    data: dict[str, Any] = {"spec": {"template": {"spec": {"containers": []}}}}
    await client.create(ControllerRevision(name=taken, labels=OTHERS, revision=7, data=data))
    await client.create(wanted)
    found = await until(
        lambda: client.get(StatefulSet, "web"), lambda found: found.status.replicas == 1, "a pod all the same"
    )
    assert found.status.collision_count == 1
    assert found.status.update_revision not in {None, taken}
