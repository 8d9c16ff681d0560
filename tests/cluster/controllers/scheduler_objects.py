"""Pods and nodes for tests of the scheduler's decisions."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping
from typing import Any

import msgspec

from navarch.cluster.controllers.pod_info import PodInfo, pod_info
from navarch.cluster.controllers.scheduling.node_info import NodeInfo, node_info
from navarch.cluster.controllers.scheduling.node_selection import Chooser, Refused
from navarch.cluster.controllers.scheduling.snapshot import SchedulerSnapshot

_numbers = itertools.count(1)
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def container(cpu: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return {"name": "main", "resources": {"requests": requests}, **more}


def pod(
    name: str = "", *, labels: Mapping[str, str] | None = None, cpu: str = "", owner: str = "", **spec: Any
) -> PodInfo:
    """A pod with one container, unless it says otherwise; every one has a uid of its own."""
    name = name or f"pod-{next(_numbers)}"
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": labels or {},
        "ownerReferences": owners,
    }
    spec = {"containers": [container(cpu)], **spec}
    return pod_info(json.dumps({"metadata": metadata, "spec": spec}).encode())


def node(
    name: str, *, labels: Mapping[str, str] | None = None, room: Mapping[str, str] | None = None, **spec: Any
) -> NodeInfo:
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    status = {"allocatable": {**ROOM, **(room or {})}}
    return node_info(json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode())


class Table:
    """A world to make decisions in."""

    def __init__(self, *nodes: NodeInfo) -> None:
        self.world = SchedulerSnapshot(lambda _: frozenset({"default"}))
        self.chooser = Chooser(self.world, random.Random(1))
        for each in nodes:
            self.world.set_node(each)

    def put(self, what: PodInfo, on: str) -> PodInfo:
        """The pod is there."""
        placed = msgspec.structs.replace(what, node=on)
        self.world.add_pod(placed)
        return placed

    def place(self, what: PodInfo) -> str:
        """Where the pod goes; it is there from now on."""
        chosen = self.chooser.choose(what)
        assert isinstance(chosen, str), chosen.message()
        self.put(what, chosen)
        return chosen

    def refuse(self, what: PodInfo) -> Refused:
        """Why the pod goes nowhere."""
        chosen = self.chooser.choose(what)
        assert isinstance(chosen, Refused), chosen
        return chosen
