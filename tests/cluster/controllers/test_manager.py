"""The controller manager can be stopped and started at any time, while kinds are added and removed."""

from __future__ import annotations

import copy

import pytest

from cluster.controllers.managers import controlled
from gadgets import DEFINITION, Gadget, installed
from navarch.api import ObjectMeta, OwnerReference
from navarch.client import MergePatch
from navarch.cluster.controllers.manager import ControllerManagerOptions
from navarch.k8s.apiextensions.v1 import CustomResourceDefinition
from navarch.k8s.core.v1 import ConfigMap, Container, Namespace, Node, Pod, PodSpec
from navarch.testing.cluster import Cluster

pytestmark = pytest.mark.cluster(controllers=False)  # each test has its own

WITHOUT_SCHEDULER = ControllerManagerOptions(scheduler=False)


def owned_by(owner: ConfigMap | Gadget) -> list[OwnerReference]:
    return [OwnerReference(api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.metadata.uid)]


async def add_node(cluster: Cluster, name: str) -> None:
    await cluster.create(Node(name=name))
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    await cluster.client.patch(Node, name, MergePatch({"status": status}), subresource="status")


async def test_what_happened_while_it_was_away_is_made_up_for(cluster: Cluster) -> None:
    """Garbage is collected, namespaces are emptied, and pods that wait are scheduled."""
    async with controlled(cluster):
        await cluster.create(Namespace(name="leaving"))
        owner = await cluster.create(ConfigMap(name="owner"))
        child = ConfigMap(name="child")
        child.metadata.owner_references = owned_by(owner)
        await cluster.create(child)
    await cluster.delete(ConfigMap, "owner")
    await cluster.delete(Namespace, "leaving")
    await cluster.create(Pod(name="pod", spec=PodSpec(containers=[Container(name="main", image="none")])))
    await add_node(cluster, "n1")
    async with controlled(cluster):
        await cluster.eventually(
            lambda: cluster.list(ConfigMap), lambda found: "child" not in {each.name for each in found}
        )
        await cluster.eventually(
            lambda: cluster.list(Namespace), lambda found: "leaving" not in {each.name for each in found}
        )
        await cluster.until(Pod, "pod", lambda pod: pod.spec.node_name == "n1")


async def test_pods_are_watched_once_for_all(cluster: Cluster) -> None:
    """There are many of them: whoever collects garbage hears of them from those who have them anyway."""
    owner = await cluster.create(ConfigMap(name="owner"))
    pod = Pod(name="owned", spec=PodSpec(containers=[Container(name="main", image="none")]))
    pod.metadata.owner_references = owned_by(owner)
    await cluster.create(pod)
    async with controlled(cluster, WITHOUT_SCHEDULER):
        await cluster.delete(ConfigMap, "owner")
        await cluster.eventually(lambda: cluster.list(Pod), lambda found: not found)
        assert len(watches_of_pods(cluster, "ResponseStarted") - watches_of_pods(cluster, "ResponseComplete")) == 1


def watches_of_pods(cluster: Cluster, stage: str) -> set[str]:
    """Those that have come so far; each is followed by another one in time."""
    return {record.audit_id for record in cluster.audit.records(verb="watch", resource="pods", stage=stage)}


async def test_owner_whose_kind_changes_its_version_is_not_taken_for_gone(cluster: Cluster) -> None:
    """What it owns stays while any version of the kind is served."""
    await installed(cluster.client)
    async with controlled(cluster, WITHOUT_SCHEDULER):
        owner = await cluster.create(Gadget(name="owner"))
        child = ConfigMap(name="child")
        child.metadata.owner_references = owned_by(owner)
        await cluster.create(child)
        await collected(cluster)
        newer = copy.deepcopy(DEFINITION["spec"]["versions"][0])
        older = {**newer, "served": False, "storage": False}
        versions = [{**newer, "name": "v2"}, older]
        name = DEFINITION["metadata"]["name"]
        await cluster.client.patch(CustomResourceDefinition, name, MergePatch({"spec": {"versions": versions}}))
        await cluster.eventually(
            lambda: watched(cluster), lambda paths: any("/v2/gadgets" in path for path in paths), what="a watch of v2"
        )
        await collected(cluster)
        assert "child" in {each.name for each in await cluster.list(ConfigMap)}


async def watched(cluster: Cluster) -> set[str]:
    """The paths of what is watched."""
    return {record.path for record in cluster.audit.records(verb="watch", stage="ResponseStarted")}


async def collected(cluster: Cluster) -> None:
    """Returns when garbage that is made now has been collected: what was there before has been, too."""
    owner = await cluster.create(ConfigMap(name="first"))
    for name in ("second", "third", "fourth"):
        new = ConfigMap(name=name)
        new.metadata.owner_references = owned_by(owner)
        owner = await cluster.create(new)
    await cluster.delete(ConfigMap, "first")
    await cluster.eventually(
        lambda: cluster.list(ConfigMap), lambda found: "fourth" not in {each.name for each in found}
    )


async def test_namespace_with_finalizers_of_others_stays(cluster: Cluster) -> None:
    """It is emptied all the same."""
    async with controlled(cluster, WITHOUT_SCHEDULER):
        await cluster.create(Namespace(metadata=ObjectMeta(name="held", finalizers=["example.com/hold"])))
        await cluster.delete(Namespace, "held")
        found = await cluster.until(Namespace, "held", lambda namespace: not namespace.spec.finalizers)
        assert found.metadata.finalizers == ["example.com/hold"]
        await cluster.client.patch(Namespace, "held", MergePatch({"metadata": {"finalizers": None}}))
        await cluster.eventually(
            lambda: cluster.list(Namespace), lambda found: "held" not in {each.name for each in found}
        )
