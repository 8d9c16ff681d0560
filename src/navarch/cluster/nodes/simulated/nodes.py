"""`SimulatedNodes`: any number of nodes whose pods are data, in one process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from navarch.client import Client
from navarch.cluster.nodes.network.addresses import AddressPool
from navarch.cluster.nodes.node_status import Profile
from navarch.cluster.nodes.simulated.life import Instant
from navarch.cluster.nodes.simulated.node import Fault, SimulatedNode
from navarch.cluster.nodes.simulated.pods import RETRIES, SimulatedPods
from navarch.cluster.nodes.simulated.stages import Life
from navarch.cluster.workers import Workers

_NETWORK: Final = "10.32.0.0/16"
_RENEWAL_SECONDS: Final = 10.0
_BEATING: Final = 4
_LABEL: Final = "navarch.dev/simulated"
_CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "250"}


class SimulatedNodes:
    """So many nodes, or those of these names. They join the cluster and let their pods live while `run` runs.

    A pod's life is what its annotation `navarch.dev/life` says, else the first of `lives` that is for it; else it is ready
    at once, and stays so. All times are those of the client's clock. `profile` is what the nodes say of themselves beside
    their names and addresses.

    >>> from navarch.cluster.nodes.simulated.stages import Life, Stage
    >>> slow = Life(labels="app=slow", stages=(Stage(becomes="running", after=2), Stage(becomes="ready", after=5, jitter=3)))
    """

    def __init__(
        self, client: Client, nodes: int | Sequence[str], lives: Sequence[Life] = (), profile: Profile | None = None
    ) -> None:
        self._client = client.using(manager="kubelet", field_validation="Ignore")
        names = [f"simulated-{number}" for number in range(1, nodes + 1)] if isinstance(nodes, int) else nodes
        self._machines = {each.name: each for each in _machines(names, profile)}
        self._pods = SimulatedPods(self._client, self._machines.get, lives)
        self._beats: Workers[str] = Workers(
            "signs of life",
            self._client.clock.liveness,
            self._client.rng,
            self._beat,
            concurrency=_BEATING,
            backoff=RETRIES,
            level=logging.WARNING,
        )
        self.ready = asyncio.Event()
        """Set when all nodes have joined the cluster."""

    @property
    def names(self) -> Sequence[str]:
        """Returns the names of the nodes."""
        return tuple(self._machines)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        for name in self._machines:
            self._beats.queue.add(name)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beats.run(), name="signs of life")
            group.create_task(self._pods.run(), name="simulated pods")

    async def _beat(self, name: str) -> float | None:
        machine = self._machines[name]
        if not machine.is_up:
            return None
        await machine.beat(self._client)
        if not self.ready.is_set() and all(each.has_joined for each in self._machines.values()):
            self.ready.set()
        return _RENEWAL_SECONDS

    # Faults

    def cut_off(self, name: str) -> None:
        """Cuts the node off from the API server, while its pods keep running."""
        self._break(name, "cut")

    def freeze(self, name: str) -> None:
        """Stops everything on the node."""
        self._break(name, "frozen")

    def kill(self, name: str) -> None:
        """Kills everything on the node, without a request to the API server."""
        self._break(name, "dead")

    def _break(self, name: str, fault: Fault) -> None:
        machine = self._machines[name]
        if machine.fault == "dead":
            return
        self.restore(name)
        machine.fault, machine.since = fault, self._client.clock.monotonic()

    def restore(self, name: str) -> None:
        """Restores the node: a cut or frozen one continues, a killed one restarts its pods by their policy."""
        machine, now = self._machines[name], Instant.of(self._client.clock)
        if machine.is_up:
            return
        for life in self._pods.of(name):
            if machine.fault != "cut":
                life.stood_still(machine.since, now.moment)
            if machine.fault == "dead":
                life.lose(now)
        machine.fault = None
        self._beats.queue.add(name)
        self._pods.look_at(name)


def _machines(names: Sequence[str], profile: Profile | None) -> Iterator[SimulatedNode]:
    like, addresses = profile or Profile(name="", runtime="simulated://1"), AddressPool(_NETWORK)
    labels: Mapping[str, str] = {_LABEL: "true", **like.labels}
    capacity = {**_CAPACITY, **like.capacity}
    for name in names:
        yield SimulatedNode(replace(like, name=name, address=addresses.take(), labels=labels, capacity=capacity))
