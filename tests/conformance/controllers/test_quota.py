"""Resource quotas: what is counted, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conformance.controllers.watching import until
from navarch.api import ObjectMeta, Quantity
from navarch.client import Client, MergePatch
from navarch.errors import Forbidden
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import (
    ConfigMap,
    Container,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    PodSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceRequirements,
    Secret,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
    VolumeResourceRequirements,
)


@pytest.fixture(autouse=True)
async def settled(client: Client, controllers: None) -> None:
    """What every namespace has is there, and counts the same in both clusters."""
    await until(lambda: client.get(ServiceAccount, "default"), lambda _: True, "an account for pods")
    await until(lambda: client.get(ConfigMap, "kube-root-ca.crt"), lambda _: True, "the certificate")


async def limited(client: Client, hard: dict[str, str], **spec: Any) -> None:
    """A quota whose usage is known, also to those who admit objects: they learn of quotas in their order, a moment later."""
    await counted(client, "quota", hard, **spec)
    await counted(client, "later", {"count/leases.coordination.k8s.io": "0"})
    await until(lambda: refusal(client, Lease(name="none")), lambda said: "quota: later" in said, "the quotas to hold")


async def counted(client: Client, name: str, hard: dict[str, str], **spec: Any) -> None:
    """A quota that has a status."""
    amounts = {resource: Quantity(amount) for resource, amount in hard.items()}
    await client.create(ResourceQuota(name=name, spec=ResourceQuotaSpec(hard=amounts, **spec)))
    await until(lambda: client.get(ResourceQuota, name), lambda found: found.status.hard == amounts, "a status")


async def until_used(client: Client, **expected: str) -> None:
    """`_` stands for a dot."""
    wanted = {name.replace("_", "."): Quantity(amount) for name, amount in expected.items()}

    def holds(found: ResourceQuota) -> bool:
        used = found.status.used or {}
        return {name: used.get(name) for name in wanted} == wanted

    await until(lambda: client.get(ResourceQuota, "quota"), holds, f"{wanted} to be used")


def pod(name: str, cpu: str = "", memory: str = "", **spec: Any) -> Pod:
    requests = {"cpu": Quantity(cpu)} if cpu else {}
    limits = {"memory": Quantity(memory)} if memory else {}
    resources = ResourceRequirements(requests=requests, limits=limits)
    containers = [Container(name=each, image="none", resources=resources) for each in ("main", "side")]
    return Pod(name=name, spec=PodSpec(containers=containers, **spec))


def claim(name: str, size: str, storage: str) -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": Quantity(size)})
    return PersistentVolumeClaim(
        name=name,
        spec=PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], storage_class_name=storage, resources=resources),
    )


async def refused(client: Client, new: Any) -> str:
    with pytest.raises(Forbidden) as error:
        await client.create(new)
    return str(error.value).partition(" is forbidden: ")[2]


async def refusal(client: Client, new: Any) -> str:
    """What would be said against it."""
    try:
        await client.using(dry_run=True).create(new)
    except Forbidden as error:
        return str(error)
    return ""


async def taken(client: Client, new: Any) -> None:
    """It is let in: at the latest when those who admit objects know what has become of the quota."""
    await until(lambda: refusal(client, new), lambda said: not said, "room for it")
    await client.create(new)


async def test_pods_are_counted_and_refused(client: Client) -> None:
    """By number and by what they ask for, in the words of Kubernetes."""
    await limited(client, {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"})
    await client.create(pod("one", "250m", "128Mi"))
    await until_used(client, pods="1", requests_cpu="500m", limits_memory="256Mi")
    assert await refused(client, pod("two", "300m", "512Mi")) == (
        "exceeded quota: quota, requested: limits.memory=1Gi,requests.cpu=600m, "
        "used: limits.memory=256Mi,requests.cpu=500m, limited: limits.memory=1Gi,requests.cpu=1"
    )
    await client.create(pod("two", "1m", "1Mi"))
    assert await refused(client, pod("three", "1m", "1Mi")) == (
        "exceeded quota: quota, requested: pods=1, used: pods=2, limited: pods=2"
    )


async def test_pods_must_say_what_they_need(client: Client) -> None:
    """Where that is limited, every container has to."""
    await limited(client, {"requests.cpu": "1", "limits.memory": "1Gi"})
    expected = "failed quota: quota: must specify limits.memory for: main,side; requests.cpu for: main,side"
    assert await refused(client, pod("one")) == expected


async def test_what_is_gone_or_has_ended_is_used_no_more(client: Client) -> None:
    """Deletion and the end of a pod free what it used."""
    await limited(client, {"pods": "2", "requests.cpu": "2", "count/pods": "5"})
    await client.create(pod("one", "250m"))
    await client.create(pod("two", "250m"))
    await until_used(client, pods="2", requests_cpu="1")
    await client.patch(Pod, "one", MergePatch({"status": {"phase": "Succeeded"}}), subresource="status")
    await until_used(client, pods="1", requests_cpu="500m")
    assert ((await client.get(ResourceQuota, "quota")).status.used or {})["count/pods"] == 2
    await client.delete(Pod, "two", grace_seconds=0)
    await until_used(client, pods="0", requests_cpu="0")


async def test_objects_are_counted_by_kind(client: Client) -> None:
    """Those that were there before count, too."""
    await limited(client, {"count/configmaps": "2", "secrets": "1"})
    await client.create(ConfigMap(name="one"))
    assert await refused(client, ConfigMap(name="two")) == (
        "exceeded quota: quota, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2"
    )
    await client.create(Secret(name="one"))
    await refused(client, Secret(name="two"))
    await client.delete(ConfigMap, "one")
    await until_used(client, **{"count/configmaps": "1"})
    await taken(client, ConfigMap(name="two"))


async def test_claims_are_counted_by_size_and_class(client: Client) -> None:
    """All of them, and those of one class."""
    gold = "gold.storageclass.storage.k8s.io/requests.storage"
    await limited(client, {"requests.storage": "5Gi", gold: "1Gi", "persistentvolumeclaims": "3"})
    assert await refused(client, claim("large", "6Gi", "silver")) == (
        "exceeded quota: quota, requested: requests.storage=6Gi, used: requests.storage=0, limited: requests.storage=5Gi"
    )
    assert await refused(client, claim("golden", "2Gi", "gold")) == (
        f"exceeded quota: quota, requested: {gold}=2Gi, used: {gold}=0, limited: {gold}=1Gi"
    )
    await client.create(claim("fine", "1Gi", "gold"))
    found = (await client.get(ResourceQuota, "quota")).status.used or {}
    assert (found["requests.storage"], found[gold], found["persistentvolumeclaims"]) == (
        Quantity("1Gi"),
        Quantity("1Gi"),
        Quantity(1),
    )


async def test_services_are_counted_by_type(client: Client) -> None:
    """Ports of nodes are few; a service that comes to need one later is looked at then."""
    await limited(client, {"services": "3", "services.nodeports": "1"})
    two = [ServicePort(name="a", port=80), ServicePort(name="b", port=81)]
    assert await refused(client, Service(name="two", spec=ServiceSpec(type="NodePort", ports=two))) == (
        "exceeded quota: quota, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1"
    )
    await client.create(Service(name="plain", spec=ServiceSpec(ports=[ServicePort(port=80)])))
    await client.patch(Service, "plain", MergePatch({"spec": {"type": "NodePort"}}))
    await until_used(client, services="1", services_nodeports="1")


async def test_quota_of_a_scope_counts_only_what_is_in_it(client: Client) -> None:
    """Pods that ask for nothing are limited, others are not."""
    await limited(client, {"pods": "1"}, scopes=["BestEffort"])
    await client.create(pod("modest"))
    assert await refused(client, pod("second")) == (
        "exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1"
    )
    await client.create(pod("asking", "1m"))


async def test_quota_can_be_raised(client: Client) -> None:
    """What was refused is taken when the limit is higher."""
    await limited(client, {"secrets": "0"})
    await refused(client, Secret(name="one"))
    await client.patch(ResourceQuota, "quota", MergePatch({"spec": {"hard": {"secrets": "1"}}}))
    await until(
        lambda: client.get(ResourceQuota, "quota"),
        lambda found: (found.status.hard or {})["secrets"] == 1,
        "the new limit to hold",
    )
    await taken(client, Secret(name="one"))


async def test_many_at_once_do_not_get_past_a_quota(client: Client) -> None:
    """Whoever comes at the same time finds less left."""
    await limited(client, {"secrets": "5"})
    new = [Secret(metadata=ObjectMeta(generate_name="one-of-")) for _ in range(20)]
    outcomes = await asyncio.gather(*(client.create(each) for each in new), return_exceptions=True)
    assert sum(isinstance(each, Secret) for each in outcomes) == 5
    assert len(await client.list(Secret)) == 5


async def test_pod_that_is_to_end_after_all_is_charged_to_the_quota_of_such(client: Client) -> None:
    """At once: nobody else gets its place."""
    await limited(client, {"pods": "1"}, scopes=["Terminating"])
    await client.create(pod("first"))
    await client.patch(Pod, "first", MergePatch({"spec": {"activeDeadlineSeconds": 60}}))
    with pytest.raises(Forbidden, match="exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1"):
        await client.create(pod("second", active_deadline_seconds=60))
    await until_used(client, pods="1")
