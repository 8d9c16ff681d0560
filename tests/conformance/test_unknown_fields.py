"""A class that knows little of a kind loses nothing of it."""

from typing import Any

import pytest

from gadgets import GADGET, Gadget, installed
from navarch.api import Dynamic, Kind, Model, Resource, Spec, Status
from navarch.client import Client
from navarch.errors import Conflict


class Container(Model):
    name: str
    image: str | None = None


class PodSpec(Model):
    containers: list[Container] = []


class Template(Model):
    spec: PodSpec


class SmallSpec(Spec):
    replicas: int | None = None
    template: Template


class SmallDeployment(Resource[SmallSpec, Status], group="apps", version="v1", kind="Deployment", plural="deployments"):
    """A Deployment of which only replicas and images are known."""


DEPLOYMENT = Kind("apps", "v1", "Deployment", plural="deployments")

CONTAINERS: list[dict[str, Any]] = [
    {
        "name": name,
        "image": f"{name}:1",
        "env": [{"name": "A", "value": name}],
        "ports": [{"containerPort": port, "name": name}],
        "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
        "readinessProbe": {"httpGet": {"path": "/", "port": port}, "periodSeconds": 7},
    }
    for name, port in (("web", 80), ("side", 90))
]


def rich() -> Dynamic:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels, "annotations": {"a": "b"}},
        "spec": {
            "containers": CONTAINERS,
            "terminationGracePeriodSeconds": 5,
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    }
    spec = {
        "replicas": 0,
        "paused": True,
        "minReadySeconds": 3,
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return Dynamic({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})


async def written(client: Client, replicas: int) -> SmallDeployment:
    """Reads, changes and writes back; again if the deployment's controller was quicker."""
    for _ in range(20):
        small = await client.get(SmallDeployment, "web")
        small.spec.replicas = replicas
        small.spec.template.spec.containers[1].image = "side:2"
        try:
            return await client.replace(small)
        except Conflict:
            continue
    return pytest.fail("expected to write without a conflict within 20 tries")


async def test_deployment_loses_nothing_to_a_class_that_knows_little(client: Client) -> None:
    """Everything but the two changes is as it was; no field was removed or added."""
    before = await client.create(rich())
    await written(client, 2)
    after = await client.get(DEPLOYMENT, "web")
    expected = before["spec"]
    expected["replicas"] = 2
    expected["template"]["spec"]["containers"][1]["image"] = "side:2"
    assert after["spec"] == expected


async def test_custom_kind_loses_nothing_either(client: Client) -> None:
    """At the top, in a list by keys, and beside a status."""
    await installed(client)
    spec = {"size": 1, "hidden": "h", "parts": [{"name": "a", "note": "x"}, {"name": "b", "note": "y"}]}
    await client.create(
        Dynamic({"apiVersion": "test.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec})
    )
    gadget = await client.get(Gadget, "g")
    assert gadget.spec.parts is not None
    gadget.spec.size = 2
    gadget.spec.parts = [gadget.spec.parts[1], gadget.spec.parts[0]]
    gadget.spec.parts[0].count = 5
    await client.replace(gadget)
    assert (await client.get(GADGET, "g"))["spec"] == {
        "size": 2,
        "hidden": "h",
        "parts": [{"name": "b", "note": "y", "count": 5}, {"name": "a", "note": "x"}],
    }


async def test_status_is_written_without_touching_what_is_unknown(client: Client) -> None:
    """Of the status itself, too."""
    await installed(client)
    made = await client.create(Gadget(name="g"))
    dynamic = await client.get(GADGET, "g")
    dynamic["status"] = {"replicas": 7, "phase": "Old"}
    await client.replace_status(dynamic)
    gadget = await client.get(Gadget, made.name)
    gadget.status.phase = "New"
    await client.replace_status(gadget)
    assert (await client.get(GADGET, "g"))["status"] == {"replicas": 7, "phase": "New"}
