"""What stands in the operator's way in Kubernetes: things of others under its names, refusals, labels that are gone."""

from __future__ import annotations

import pytest

from clusters import NAME, SECONDS, example
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import GROUP, EtcdCluster
from navarch.api import ObjectMeta, OwnerReference, Quantity
from navarch.client import MergePatch
from navarch.k8s.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    ResourceQuota,
    ResourceQuotaSpec,
    Service,
    ServicePort,
    ServiceSpec,
    VolumeResourceRequirements,
)
from navarch.testing import Cluster

pytestmark = pytest.mark.cluster(controllers=False)
FIRST = f"{NAME}-0"


def left_behind(labels: dict[str, str]) -> PersistentVolumeClaim:
    """The claim of a cluster that was deleted, before the garbage collector has come."""
    owner = OwnerReference(
        api_version=f"{GROUP}/v1beta2", kind="EtcdCluster", name=NAME, uid="of-before", controller=True
    )
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=FIRST, labels=labels, owner_references=[owner]),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
        ),
    )


async def says(cluster: Cluster, message: str) -> None:
    await cluster.eventually(
        lambda: cluster.get(EtcdCluster, NAME),
        lambda found: message in found.status.next_step,
        timeout=SECONDS,
        what=f"a status that says {message!r}",
    )


async def starts(cluster: Cluster) -> Pod:
    """The pod of the first member."""
    pods = await cluster.eventually(lambda: cluster.list(Pod), bool, timeout=SECONDS, what="a first member")
    return pods[0]


@pytest.mark.parametrize("labels", [{"app": "etcd", "etcd_cluster": NAME}, {}])
async def test_a_cluster_does_not_begin_with_the_data_of_another_one(cluster: Cluster, labels: dict[str, str]) -> None:
    """One of its name was there before: its claim is not taken for one's own, with its labels or without."""
    async with cluster.run(etcd_operator()):
        await cluster.create(left_behind(labels))
        await cluster.apply(example(1))
        await says(cluster, FIRST)
        assert not await cluster.list(Pod)
        await cluster.client.patch(PersistentVolumeClaim, FIRST, MergePatch({"metadata": {"finalizers": None}}))
        await cluster.delete(PersistentVolumeClaim, FIRST)
        await starts(cluster)
        (claim,) = await cluster.list(PersistentVolumeClaim)
        assert [each.uid for each in claim.metadata.owner_references or ()] != ["of-before"]


async def test_a_service_of_somebody_else_is_left_alone(cluster: Cluster) -> None:
    """A Service of another owner with the cluster's name stays unchanged."""
    theirs = Service(name=NAME, spec=ServiceSpec(selector={"app": "shop"}, ports=[ServicePort(port=80)]))
    async with cluster.run(etcd_operator()):
        await cluster.create(theirs)
        await cluster.apply(example(1))
        await says(cluster, f"Service {NAME} already exists and does not belong to this cluster")
        found = await cluster.get(Service, NAME)
        assert (found.spec.selector, found.metadata.owner_references) == ({"app": "shop"}, [])
        assert not await cluster.list(Pod)
        await cluster.delete(Service, NAME)
        await starts(cluster)


async def test_what_kubernetes_refuses_is_said(cluster: Cluster) -> None:
    """No pod may be made here: the status has the reason, and goes on when there is none any more."""
    quota = ResourceQuota(name="none", spec=ResourceQuotaSpec(hard={"pods": Quantity("0")}))
    quota.status.hard = quota.spec.hard
    async with cluster.run(etcd_operator()):
        await cluster.client.replace_status(await cluster.create(quota))
        await cluster.apply(example(1))
        await says(cluster, "the API server refused")
        await cluster.delete(ResourceQuota, "none")
        await starts(cluster)


async def test_a_pod_whose_labels_somebody_took_away_gets_them_back(cluster: Cluster) -> None:
    """The operator does not see it without them, and would make it again for ever."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1))
        pod = await starts(cluster)
        await cluster.client.patch(Pod, pod.name, MergePatch({"metadata": {"labels": {"app": None}}}))
        found = await cluster.eventually(
            lambda: cluster.get(Pod, pod.name), lambda found: found.labels.get("app") == "etcd", timeout=SECONDS
        )
        assert found.metadata.uid == pod.metadata.uid
