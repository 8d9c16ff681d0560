"""Claims and volumes: who gets which, and what becomes of it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.controllers.nodes import Nodes, some_nodes
from conformance.controllers.watching import for_a_while, until, until_event, until_gone
from navarch.api import Quantity
from navarch.client import Client, MergePatch
from navarch.errors import NotFound
from navarch.k8s.core.v1 import (
    Container,
    HostPathVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    ServiceAccount,
    Volume,
    VolumeNodeAffinity,
    VolumeResourceRequirements,
)
from navarch.k8s.storage.v1 import StorageClass, VolumeAttributesClass

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"

_numbers = itertools.count(1)
pytestmark = pytest.mark.usefixtures("scheduler")


@pytest.fixture
async def nodes(client: Client, scheduler: None) -> AsyncIterator[Nodes]:
    """Nodes of this test; pods of its namespace can be made."""
    await until(lambda: client.get(ServiceAccount, "default"), lambda _: True, "an account for pods")
    async with some_nodes(client) as nodes:
        yield nodes


@pytest.fixture
async def storage(client: Client) -> AsyncIterator[str]:
    """A class of this test alone, for volumes that are made by hand; volumes of it go with the test."""
    name = f"by-hand-{next(_numbers)}"
    yield name
    await client.delete_all(PersistentVolumeClaim)
    for volume in await client.list(PersistentVolume):
        if volume.spec.storage_class_name == name:
            with contextlib.suppress(NotFound):
                await client.delete(PersistentVolume, volume.name)


def claim(name: str, storage: str, size: str = "1Gi", **spec: Any) -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": Quantity(size)})
    return PersistentVolumeClaim(
        name=name,
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"], resources=resources, storage_class_name=storage, **spec
        ),
    )


async def volume(client: Client, storage: str, size: str = "1Gi", **spec: Any) -> PersistentVolume:
    """A volume that somebody made by hand."""
    new = PersistentVolume(
        name=f"{storage}-{next(_numbers)}",
        labels=spec.pop("labels", {}),
        spec=PersistentVolumeSpec(
            **{
                "access_modes": ["ReadWriteOnce"],
                "capacity": {"storage": Quantity(size)},
                "host_path": HostPathVolumeSource(path="/nowhere"),
                "storage_class_name": storage,
                "persistent_volume_reclaim_policy": "Retain",
                **spec,
            }
        ),
    )
    return await client.create(new)


def user(name: str, *claims: str) -> Pod:
    volumes = [
        Volume(name=each, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=each)) for each in claims
    ]
    return Pod(name=name, spec=PodSpec(containers=[Container(name="main", image="none")], volumes=volumes))


async def bound(client: Client, name: str) -> PersistentVolumeClaim:
    return await until(
        lambda: client.get(PersistentVolumeClaim, name), lambda found: found.status.phase == "Bound", f"{name} bound"
    )


async def until_phase(client: Client, name: str, phase: str) -> PersistentVolume:
    return await until(
        lambda: client.get(PersistentVolume, name), lambda found: found.status.phase == phase, f"{name} to be {phase}"
    )


async def test_claim_gets_the_smallest_volume_that_suits_it(client: Client, storage: str) -> None:
    """Both know each other, and the claim has what the volume has."""
    sizes = {size: (await volume(client, storage, size)).name for size in ("1Gi", "5Gi", "3Gi")}
    await until_phase(client, sizes["3Gi"], "Available")
    await client.create(claim("data", storage, "2Gi"))
    found = await bound(client, "data")
    assert found.spec.volume_name == sizes["3Gi"]
    assert found.status.capacity == {"storage": Quantity("3Gi")}
    assert found.status.access_modes == ["ReadWriteOnce"]
    assert found.annotations["pv.kubernetes.io/bind-completed"] == "yes"
    taken = await until_phase(client, sizes["3Gi"], "Bound")
    reference = taken.spec.claim_ref
    assert reference is not None
    assert (reference.kind, reference.name, reference.uid) == ("PersistentVolumeClaim", "data", found.metadata.uid)
    assert (await until_phase(client, sizes["5Gi"], "Available")).spec.claim_ref is None


async def test_claim_waits_for_a_volume(client: Client, storage: str) -> None:
    """It is pending, and says why; it is bound as soon as one comes."""
    await client.create(StorageClass(name=storage, provisioner="kubernetes.io/no-provisioner"))
    await client.create(claim("data", storage))
    await for_a_while(
        lambda: client.get(PersistentVolumeClaim, "data"),
        lambda found: found.status.phase == "Pending",
        "",
        seconds=0.3,
    )
    made = await volume(client, storage)
    assert (await bound(client, "data")).spec.volume_name == made.name
    await client.delete(StorageClass, storage)


async def test_claim_of_no_class_says_that_nothing_suits_it(client: Client, storage: str) -> None:
    """Nobody makes volumes without a class."""
    await client.create(claim("data", ""))
    expected = "no persistent volumes available for this claim and no storage class is set"
    await until_event(client, "data", "FailedBinding", expected)
    await client.create(claim("other", storage))
    await until_event(client, "other", "ProvisioningFailed", f'storageclass.storage.k8s.io "{storage}" not found')


async def test_claim_of_an_unknown_provisioner_waits_for_it(client: Client, storage: str) -> None:
    """An event names it, and so does the claim, for those who make volumes."""
    await client.create(StorageClass(name=storage, provisioner="example.com/disks"))
    await client.create(claim("data", storage))
    await until_event(
        client, "data", "ExternalProvisioning", "Waiting for a volume to be created either by the external provisioner"
    )
    found = await client.get(PersistentVolumeClaim, "data")
    assert found.annotations["volume.kubernetes.io/storage-provisioner"] == "example.com/disks"
    await client.delete(StorageClass, storage)


async def test_volume_can_be_kept_for_a_claim(client: Client, storage: str) -> None:
    """It takes the claim of that name, and no other."""
    kept = ObjectReference(kind="PersistentVolumeClaim", namespace=client.options.namespace, name="data")
    made = await volume(client, storage, "1Gi", claim_ref=kept)
    await client.create(claim("other", storage))
    await client.create(claim("data", storage))
    assert (await bound(client, "data")).spec.volume_name == made.name
    assert (await client.get(PersistentVolumeClaim, "other")).status.phase == "Pending"


async def test_claim_can_name_a_volume(client: Client, storage: str) -> None:
    """It gets that one."""
    await volume(client, storage)
    named = await volume(client, storage, "2Gi")
    await client.create(claim("data", storage, volume_name=named.name))
    assert (await bound(client, "data")).spec.volume_name == named.name
    await until_phase(client, named.name, "Bound")


async def test_volume_is_released_with_its_claim(client: Client, storage: str) -> None:
    """One that is to be retained stays, with its data, and takes nobody else."""
    made = await volume(client, storage)
    await client.create(claim("data", storage))
    await bound(client, "data")
    await client.delete(PersistentVolumeClaim, "data")
    await until_gone(client, PersistentVolumeClaim, "data")
    await until_phase(client, made.name, "Released")
    await client.create(claim("next", storage))
    await for_a_while(
        lambda: client.get(PersistentVolumeClaim, "next"),
        lambda found: found.status.phase == "Pending",
        "",
        seconds=0.5,
    )


async def test_claim_whose_volume_is_gone_is_lost(client: Client, storage: str) -> None:
    """It says so, and is not given another."""
    made = await volume(client, storage)
    await client.create(claim("data", storage))
    await bound(client, "data")
    await client.delete(PersistentVolume, made.name)
    with contextlib.suppress(NotFound):
        await client.patch(PersistentVolume, made.name, MergePatch({"metadata": {"finalizers": None}}))
    await until_gone(client, PersistentVolume, made.name)
    await until(
        lambda: client.get(PersistentVolumeClaim, "data"), lambda found: found.status.phase == "Lost", "a lost claim"
    )
    await until_event(client, "data", "ClaimLost", "Bound claim has lost its PersistentVolume.")


async def test_claim_in_use_stays_until_its_pod_is_gone(client: Client, storage: str, nodes: Nodes) -> None:
    """A finalizer keeps it; without a pod it goes at once."""
    await nodes.add()
    await volume(client, storage)
    await client.create(claim("data", storage))
    found = await bound(client, "data")
    assert "kubernetes.io/pvc-protection" in (await until_protected(client, "data")).metadata.finalizers
    await client.create(user("user", "data"))
    await until(lambda: client.get(Pod, "user"), lambda found: found.spec.node_name, "the pod to have a node")
    await client.delete(PersistentVolumeClaim, "data")
    await for_a_while(
        lambda: client.get(PersistentVolumeClaim, "data"),
        lambda now: now.metadata.uid == found.metadata.uid,
        "",
        seconds=0.5,
    )
    await client.delete(Pod, "user", grace_seconds=0)
    await until_gone(client, PersistentVolumeClaim, "data")


async def until_protected(client: Client, name: str) -> PersistentVolumeClaim:
    return await until(
        lambda: client.get(PersistentVolumeClaim, name), lambda found: found.metadata.finalizers, "a finalizer"
    )


async def test_volume_in_use_stays_until_its_claim_is_gone(client: Client, storage: str) -> None:
    """One that is deleted while it is bound goes after its claim."""
    made = await volume(client, storage)
    await client.create(claim("data", storage))
    await bound(client, "data")
    await until_phase(client, made.name, "Bound")
    await client.delete(PersistentVolume, made.name)
    await for_a_while(
        lambda: client.get(PersistentVolume, made.name), lambda _: True, "the volume to stay", seconds=0.5
    )
    await client.delete(PersistentVolumeClaim, "data")
    await until_gone(client, PersistentVolume, made.name)


async def test_claim_that_waits_for_its_first_user_follows_the_pod(client: Client, storage: str, nodes: Nodes) -> None:
    """The pod goes where a volume is, and only then is the claim bound."""
    new = StorageClass(
        name=storage, provisioner="kubernetes.io/no-provisioner", volume_binding_mode="WaitForFirstConsumer"
    )
    await client.create(new)
    for _ in range(2):
        await nodes.add()
    there = nodes.names[1]
    requirement = NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=[there])
    terms = [NodeSelectorTerm(match_expressions=[requirement])]
    affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    made = await volume(client, storage, node_affinity=affinity)
    await client.create(claim("data", storage))
    await until_event(client, "data", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    await client.create(user("user", "data"))
    found = await until(lambda: client.get(Pod, "user"), lambda found: found.spec.node_name, "the pod to have a node")
    assert found.spec.node_name == there
    assert (await bound(client, "data")).spec.volume_name == made.name
    await client.create(user("elsewhere", "data"))
    second = await until(lambda: client.get(Pod, "elsewhere"), lambda found: found.spec.node_name, "a node")
    assert second.spec.node_name == there
    await client.delete(StorageClass, storage)


async def test_pod_waits_for_its_claims(client: Client, nodes: Nodes, storage: str) -> None:
    """It is told which one is missing, or not bound."""
    await nodes.add()
    await client.create(user("first", "missing"))
    await until_event(
        client,
        "first",
        "FailedScheduling",
        '0/1 nodes are available: persistentvolumeclaim "missing" not found. not found',
    )
    await client.create(claim("unbound", storage))
    await client.create(user("second", "unbound"))
    await until_event(
        client,
        "second",
        "FailedScheduling",
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
    )
    await volume(client, storage)
    await until(lambda: client.get(Pod, "second"), lambda found: found.spec.node_name, "the pod to have a node")


async def test_attributes_class_in_use_stays_until_its_claim_is_gone(client: Client, storage: str) -> None:
    """Like the claim itself, it has a finalizer."""
    name = f"attributes-{storage}"
    await client.create(VolumeAttributesClass(name=name, driver_name="example.com/disks", parameters={"speed": "high"}))
    await client.create(claim("data", storage, volume_attributes_class_name=name))
    await until_protected(client, "data")
    await client.delete(VolumeAttributesClass, name)
    await for_a_while(lambda: client.get(VolumeAttributesClass, name), lambda _: True, "the class to stay", seconds=0.5)
    await client.delete(PersistentVolumeClaim, "data")
    await until_gone(client, VolumeAttributesClass, name)


@pytest.fixture
async def no_default(client: Client) -> AsyncIterator[None]:
    """No class is the default one meanwhile, also where a cluster brings one of its own."""
    classes = [each.name for each in await client.list(StorageClass) if each.annotations.get(DEFAULT_CLASS) == "true"]
    for name in classes:
        await client.patch(StorageClass, name, MergePatch({"metadata": {"annotations": {DEFAULT_CLASS: "false"}}}))
    yield
    for name in classes:
        await client.patch(StorageClass, name, MergePatch({"metadata": {"annotations": {DEFAULT_CLASS: "true"}}}))


@pytest.mark.usefixtures("no_default")
async def test_claim_without_a_class_takes_the_default_one_that_comes_after_it(client: Client, storage: str) -> None:
    """A claim that wants no class at all, which is another thing, keeps to that."""
    for name, wanted in (("without", None), ("none", "")):
        new = claim(name, storage)
        new.spec.storage_class_name = wanted
        await client.create(new)
    default = StorageClass(name=storage, annotations={DEFAULT_CLASS: "true"}, provisioner="example.com/nobody")
    await client.create(default)
    try:
        found = await until(
            lambda: client.get(PersistentVolumeClaim, "without"),
            lambda found: bool(found.spec.storage_class_name),
            "a class for the claim",
        )
    finally:
        await client.delete(StorageClass, storage)
    assert found.spec.storage_class_name == storage
    assert not (await client.get(PersistentVolumeClaim, "none")).spec.storage_class_name
