"""RuntimeClasses: what a pod gets of its class."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from conformance.controllers.watching import until
from navarch.api import Quantity
from navarch.client import Client
from navarch.errors import AlreadyExists, Forbidden
from navarch.k8s.core.v1 import Container, Pod, PodSpec, ServiceAccount, Toleration
from navarch.k8s.node.v1 import Overhead, RuntimeClass, Scheduling


def pod(runtime_class: str | None, **spec: Any) -> Pod:
    container = Container(name="main", image="none")
    return Pod(name="one", spec=PodSpec(containers=[container], runtime_class_name=runtime_class, **spec))


async def refusal(client: Client, wanted: Pod) -> str:
    """What is said against it; the real server takes a moment to learn that a class is gone."""
    try:
        await client.using(dry_run=True).create(wanted)
    except Forbidden as error:
        return str(error)
    return "nothing"


async def test_pod_gets_the_overhead_and_the_places_of_its_class(client: Client) -> None:
    """And is refused if there is no such class, or it asks for something else."""
    name = f"of-{client.options.namespace}"
    toleration = Toleration(key="slow", operator="Exists")
    made = RuntimeClass(
        name=name,
        handler="slow",
        overhead=Overhead(pod_fixed={"cpu": Quantity("10m")}),
        scheduling=Scheduling(node_selector={"disk": "slow"}, tolerations=[toleration]),
    )
    with contextlib.suppress(AlreadyExists):
        await client.create(ServiceAccount(name="default"))
    await client.create(made)
    try:
        found = await client.using(dry_run=True).create(pod(name))
        assert found.spec.overhead == {"cpu": Quantity("10m")}
        assert found.spec.node_selector == {"disk": "slow"}
        assert toleration in (found.spec.tolerations or ())
        with pytest.raises(Forbidden, match="Pod's Overhead doesn't match RuntimeClass's defined Overhead"):
            await client.create(pod(name, overhead={"cpu": Quantity("1")}))
        with pytest.raises(Forbidden, match=r"conflict: runtimeClass.scheduling.nodeSelector\[disk\] = slow; "):
            await client.create(pod(name, node_selector={"disk": "fast"}))
    finally:
        await client.delete(RuntimeClass, name)
    gone = f'pod rejected: RuntimeClass "{name}" not found'
    await until(lambda: refusal(client, pod(name)), lambda said: gone in said, gone)
    with pytest.raises(Forbidden, match="Pod Overhead set without corresponding RuntimeClass defined Overhead"):
        await client.create(pod(None, overhead={"cpu": Quantity("1")}))
