"""Volumes that are made on the machine for claims of the class `standard`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from cluster.controllers.managers import controlled
from navarch.api import Quantity
from navarch.client import MergePatch, Request, Response, Transport, WebSocket
from navarch.cluster.controllers.manager import ControllerManagerOptions
from navarch.cluster.controllers.volumes.local_volumes import (
    LocalVolumes,
    declare_volume_reclaimer,
    local_volume,
    standard_class,
)
from navarch.k8s.core.v1 import (
    Container,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    Volume,
    VolumeResourceRequirements,
)
from navarch.k8s.storage.v1 import StorageClass
from navarch.operator import Operator
from navarch.testing.cluster import Cluster

pytestmark = pytest.mark.cluster(controllers=False)  # each test has its own


class Folders:
    """Remembers what was removed."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    @property
    def options(self) -> ControllerManagerOptions:
        return ControllerManagerOptions(
            volumes=LocalVolumes(path=lambda node, name: f"/{node}/{name}", remove=self._remove)
        )

    async def _remove(self, path: str) -> None:
        self.removed.append(path)


def claim(**spec: Any) -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    return PersistentVolumeClaim(
        name="data", spec=PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=resources, **spec)
    )


def user() -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    volumes = [Volume(name="data", persistent_volume_claim=source)]
    return Pod(name="user", spec=PodSpec(containers=[Container(name="main", image="none")], volumes=volumes))


async def add_node(cluster: Cluster, name: str) -> None:
    await cluster.create(Node(name=name, labels={"kubernetes.io/hostname": name}))
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    patch = MergePatch({"status": {"allocatable": room, "conditions": conditions}})
    await cluster.client.patch(Node, name, patch, subresource="status")
    await cluster.until(Node, name, lambda node: not node.spec.taints)


async def bound(cluster: Cluster) -> PersistentVolume:
    found = await cluster.until(PersistentVolumeClaim, "data", lambda claim: claim.status.phase == "Bound")
    return await cluster.get(PersistentVolume, found.spec.volume_name or "")


async def test_claim_without_a_class_gets_a_folder_on_the_node_of_its_pod(cluster: Cluster) -> None:
    """The default class waits for the pod, and makes the volume where it goes."""
    async with controlled(cluster, Folders().options):
        await add_node(cluster, "n1")
        await cluster.until(StorageClass, "standard", lambda _: True)
        await cluster.create(claim())
        await cluster.create(user())
        volume = await bound(cluster)
        pod = await cluster.until(Pod, "user", lambda pod: pod.spec.node_name)
    assert pod.spec.node_name == "n1"
    assert volume.spec.local is not None
    assert volume.spec.local.path == f"/n1/{volume.name}"
    assert volume.spec.storage_class_name == "standard"
    assert volume.spec.capacity == {"storage": Quantity("1Gi")}


async def test_volume_goes_with_its_claim(cluster: Cluster) -> None:
    """Its folder is removed, then the volume; one that binds at once is on no node."""
    folders = Folders()
    async with controlled(cluster, folders.options):
        await cluster.create(StorageClass(name="now", provisioner="navarch.dev/local"))
        await cluster.create(claim(storage_class_name="now"))
        volume = await bound(cluster)
        await cluster.delete(PersistentVolumeClaim, "data")
        await cluster.eventually(lambda: cluster.list(PersistentVolume), lambda found: not found)
    assert volume.spec.host_path is not None
    assert set(folders.removed) == {volume.spec.host_path.path}


async def test_volume_of_a_retaining_class_stays(cluster: Cluster) -> None:
    """Its claim is gone, its data is not."""
    folders = Folders()
    async with controlled(cluster, folders.options):
        await cluster.create(StorageClass(name="kept", provisioner="navarch.dev/local", reclaim_policy="Retain"))
        await cluster.create(claim(storage_class_name="kept"))
        volume = await bound(cluster)
        await cluster.delete(PersistentVolumeClaim, "data")
        await cluster.until(PersistentVolume, volume.name, lambda found: found.status.phase == "Released")
    assert not folders.removed


async def test_claim_can_grow(cluster: Cluster) -> None:
    """Claim and volume say the new size."""
    async with controlled(cluster, Folders().options):
        await cluster.create(StorageClass(name="now", provisioner="navarch.dev/local", allow_volume_expansion=True))
        await cluster.create(claim(storage_class_name="now"))
        volume = await bound(cluster)
        more = MergePatch({"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
        await cluster.client.patch(PersistentVolumeClaim, "data", more)
        expected = {"storage": Quantity("2Gi")}
        await cluster.until(PersistentVolumeClaim, "data", lambda found: found.status.capacity == expected)
        assert (await cluster.get(PersistentVolume, volume.name)).spec.capacity == expected


class Deaf:
    """A transport that opens no watch of claims: what comes later is not heard of."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.origin = inner.origin
        self.host = inner.host

    async def send(self, request: Request) -> Response:
        is_listed = "watch" not in request.query
        if request.long_lived and request.path.endswith("/persistentvolumeclaims") and not is_listed:
            await asyncio.Event().wait()
        return await self._inner.send(request)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        return await self._inner.connect(request, protocols)

    async def close(self) -> None:
        await self._inner.close()


async def test_volume_of_a_claim_that_is_not_known_yet_keeps_its_data(cluster: Cluster) -> None:
    """The server is asked before anything is removed."""
    folders = Folders()
    volumes = folders.options.volumes
    assert volumes is not None
    operator = Operator("volumes", crds="ignore", election=False, check_permissions=False)
    declare_volume_reclaimer(operator, volumes)
    async with cluster.run(operator, client=cluster.client.through(Deaf)):
        new = local_volume(claim(), standard_class(), volumes)
        new.metadata.name, new.spec.claim_ref = "pv", None
        await cluster.create(new)
        await until_phase(cluster, "Available")  # so that everything was listed
        made = await cluster.create(claim(volume_name="pv"))
        owner = {"uid": made.metadata.uid, "namespace": made.namespace, "name": made.name}
        await cluster.client.patch(PersistentVolume, "pv", MergePatch({"spec": {"claimRef": owner}}))
        await until_phase(cluster, "Bound")
    assert folders.removed == []


async def until_phase(cluster: Cluster, phase: str) -> None:
    await cluster.until(PersistentVolume, "pv", lambda found: found.status.phase == phase)
