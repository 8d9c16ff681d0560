"""The controllers of the embedded cluster, or those of kube-controller-manager, and somebody who plays the nodes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial

import pytest

import rig
from conformance.controllers.kubelet import Kubelet
from navarch.client import Client
from navarch.cluster.controllers.manager import ControllerManager, ControllerManagerOptions
from navarch.cluster.controllers.volumes.local_volumes import LocalVolumes
from navarch.cluster.embedded.credentials import ClusterAuthority, sign_request
from navarch.errors import AlreadyExists
from navarch.k8s.core.v1 import ServiceAccount
from navarch.testing.cluster import Cluster


@pytest.fixture(autouse=True)
async def controllers(embedded: Cluster | None, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Ours run while the test does; those of a real cluster always run."""
    if embedded is None:
        yield
        return
    options = ControllerManagerOptions(
        root_certificate="a certificate",
        volumes=_VOLUMES,
        scheduler=_is_scheduled(request),
        sign=partial(sign_request, ClusterAuthority.make(embedded.client.clock).pair, embedded.client.clock),
    )
    async with asyncio.TaskGroup() as group:
        plane = group.create_task(ControllerManager(embedded.client, options).run(), name="control plane")
        yield
        plane.cancel()


@pytest.fixture
def rig_or_none(engine: str, request: pytest.FixtureRequest) -> rig.Cluster | None:
    """The real cluster, if that is the engine; with a scheduler for those who ask for one."""
    if engine != "real":
        return None
    found: rig.Cluster = request.getfixturevalue(
        "rig_cluster_with_scheduler" if _is_scheduled(request) else "rig_cluster"
    )
    return found


@pytest.fixture
def scheduler(controllers: None) -> None:
    """Pods of the test are scheduled."""


def _is_scheduled(request: pytest.FixtureRequest) -> bool:
    return "scheduler" in request.fixturenames


async def _leave(path: str) -> None:
    """There are no folders here."""


_VOLUMES = LocalVolumes(path=lambda node, volume: f"/volumes/{node}/{volume}", remove=_leave)


@pytest.fixture
async def kubelet(client: Client, controllers: None) -> AsyncIterator[Kubelet]:
    """Runs the pods of the test's namespace: on paper. Every pod needs an account, which may not have come yet."""
    with contextlib.suppress(AlreadyExists):
        await client.create(ServiceAccount(name="default"))
    async with Kubelet(client).running() as kubelet:
        yield kubelet
