"""Nodes that are not well: their taints, and what becomes of their pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.controllers.nodes import Nodes, some_nodes
from conformance.controllers.watching import for_a_while, until, until_event
from navarch._base.clock import SystemClock
from navarch.api import format_time
from navarch.client import Client, MergePatch
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Container, Node, Pod, PodSpec, ServiceAccount, Toleration

NOT_READY = "node.kubernetes.io/not-ready"
ALLOWED_SECONDS = 40.0
"""Kubernetes taints one node every ten seconds, and looks at all of them every five."""


@pytest.fixture
async def nodes(client: Client, controllers: None) -> AsyncIterator[Nodes]:
    """Two nodes that are ready."""
    await until(lambda: client.get(ServiceAccount, "default"), lambda _: True, "an account for pods")
    async with some_nodes(client) as nodes:
        for _ in range(2):
            await nodes.add()
        yield nodes


async def taints(client: Client, node: str) -> set[tuple[str, str]]:
    return {(each.key, each.effect) for each in (await client.get(Node, node)).spec.taints or ()}


async def until_taints(client: Client, node: str, expected: set[tuple[str, str]]) -> None:
    await until(lambda: taints(client, node), lambda found: found == expected, f"{expected}", seconds=ALLOWED_SECONDS)


async def running(client: Client, name: str, node: str, **spec: Any) -> Pod:
    """A pod that is ready on that node."""
    await client.create(Pod(name=name, spec=PodSpec(containers=[Container(name="main", image="none")], **spec)))
    await client.bind(name, node)
    now = format_time(SystemClock().now())
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    patch = MergePatch({"status": {"phase": "Running", "conditions": [condition]}})
    return await client.patch(Pod, name, patch, subresource="status")


async def is_leaving(client: Client, name: str) -> bool:
    try:
        return (await client.get(Pod, name)).metadata.deletion_timestamp is not None
    except NotFound:
        return True


async def until_leaving(client: Client, name: str) -> None:
    await until(lambda: is_leaving(client, name), lambda leaving: leaving, f"{name} to leave", seconds=ALLOWED_SECONDS)


async def test_node_that_is_not_ready_is_tainted(client: Client, nodes: Nodes) -> None:
    """Nothing new goes there, what is there has to leave in time; when it is well again, all that is over."""
    sick = nodes.names[0]
    await nodes.report(sick, ready="False")
    await until_taints(client, sick, {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")})
    await nodes.report(sick)
    await until_taints(client, sick, set())


async def test_conditions_become_taints(client: Client, nodes: Nodes) -> None:
    """A node that is short of something, or closed, takes nothing new."""
    node = nodes.names[0]
    await client.patch(Node, node, MergePatch({"spec": {"unschedulable": True}}))
    await until_taints(client, node, {("node.kubernetes.io/unschedulable", "NoSchedule")})
    await client.patch(Node, node, MergePatch({"spec": {"unschedulable": None}}))
    await until_taints(client, node, set())
    now = format_time(SystemClock().now())
    conditions = [
        {"type": type_, "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
        for type_ in ("Ready", "MemoryPressure")
    ]
    await client.patch(Node, node, MergePatch({"status": {"conditions": conditions}}), subresource="status")
    await until_taints(client, node, {("node.kubernetes.io/memory-pressure", "NoSchedule")})


async def test_pods_leave_a_node_whose_taint_they_do_not_tolerate(client: Client, nodes: Nodes) -> None:
    """At once, after the time that they tolerate it, or never."""
    node = nodes.names[0]
    await running(client, "plain", node)
    tolerated = Toleration(key="broken", operator="Exists", effect="NoExecute")
    await running(client, "tolerant", node, tolerations=[tolerated])
    a_while = Toleration(key="broken", operator="Exists", effect="NoExecute", toleration_seconds=5)
    await running(client, "patient", node, tolerations=[a_while])
    taint = {"key": "broken", "effect": "NoExecute"}
    await client.patch(Node, node, MergePatch({"spec": {"taints": [taint]}}))
    await until_leaving(client, "plain")
    assert not await is_leaving(client, "patient")
    found = await client.get(Pod, "plain")
    target = next(each for each in found.status.conditions or () if each.type == "DisruptionTarget")
    assert (target.reason, target.message) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    namespace = client.options.namespace
    await until_event(client, "plain", "TaintManagerEviction", f"Marking for deletion Pod {namespace}/plain")
    await until_leaving(client, "patient")
    await for_a_while(lambda: is_leaving(client, "tolerant"), lambda leaving: not leaving, "it to stay", seconds=0.3)


async def test_nobody_leaves_while_no_node_is_ready(client: Client, nodes: Nodes) -> None:
    """If all are lost, it is not the nodes that are to blame."""
    for name in nodes.names:
        await nodes.report(name, ready="False")
    for name in nodes.names:
        await until_taints(client, name, {(NOT_READY, "NoSchedule")})
