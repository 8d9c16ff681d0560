"""The objects that benchmarks work on: custom resources of at least 1.3 KB, by the thousand."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from navarch import Client, Model, Resource, Spec, Status
from navarch.api import Dynamic, encode, full_wire
from navarch.errors import ApiError

NAMESPACE = "bench"
GROUP, VERSION, PLURAL = "bench.example.com", "v1", "widgets"


class Port(Model):
    name: str
    number: int
    protocol: str = "TCP"


class WidgetSpec(Spec):
    replicas: int = 1
    image: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    ports: list[Port] = []
    note: str = ""


class WidgetStatus(Status):
    phase: str = ""


class Widget(Resource[WidgetSpec, WidgetStatus], group=GROUP, version=VERSION):
    """Something to list by the thousand."""


def widget(number: int, replicas: int = 3, note: str = "x" * 120) -> Widget:
    """The widget of that number."""
    spec = WidgetSpec(
        replicas=replicas,
        image=f"registry.example.com/team/application-{number}:1.2.3",
        args=[f"--flag-{index}=value-{index}" for index in range(8)],
        env={f"VARIABLE_{index}": f"value of variable {index}" for index in range(8)},
        ports=[Port(name=f"port-{index}", number=8000 + index) for index in range(4)],
        note=note,
    )
    labels = {
        "app.kubernetes.io/name": f"app-{number}",
        "app.kubernetes.io/part-of": "benchmark",
        "shard": str(number % 16),
    }
    return Widget(name=f"widget-{number:05}", namespace=NAMESPACE, labels=labels, spec=spec)


def manifest(number: int, replicas: int = 3, note: str = "x" * 120) -> dict[str, Any]:
    """The same for libraries that take dicts."""
    found: dict[str, Any] = json.loads(encode(widget(number, replicas, note)))
    del found["status"]
    return found


async def prepare(client: Client, count: int) -> float:
    """The CRD, a namespace and `count` widgets; returns the mean size of one on the wire in bytes."""
    await declare(client)
    numbers = iter(range(count))
    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(_create_from(client, numbers))
    first = await client.list(Widget, namespace=NAMESPACE, page_size=100)
    return sum(len(encode(full_wire(found))) for found in first) / len(first)


async def declare(client: Client) -> None:
    """The CRD and a namespace."""
    from navarch.schema import crd

    await client.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    await client.create(Dynamic(crd(Widget)))


async def create(client: Client, wanted: Widget) -> Widget:
    """Creates the widget as soon as the CRD is served."""
    while True:
        try:
            return await client.create(wanted)
        except ApiError as error:
            if error.code != 404:
                raise


async def _create_from(client: Client, numbers: Any) -> None:
    for number in numbers:
        await create(client, widget(number))
