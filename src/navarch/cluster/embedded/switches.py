"""Nodes that can be switched off and on, by an annotation of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from navarch._base.tasks import unless
from navarch.cache import Cache, Cached, Change
from navarch.client import Client
from navarch.cluster.embedded.power import POWER, POWER_OFF
from navarch.cluster.nodes.kubelet import Kubelet
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import Node

__all__ = ["Switch", "Switches"]


class Switch:
    """A node that runs while it is on; at first it is off."""

    def __init__(self, node: Kubelet) -> None:
        self.node = node
        self._on, self._off = asyncio.Event(), asyncio.Event()
        self._off.set()

    def turn(self, *, on: bool) -> None:
        """From now on it is to run, or not."""
        wanted, other = (self._on, self._off) if on else (self._off, self._on)
        wanted.set()
        other.clear()

    async def run(self) -> None:
        """Runs the node whenever it is on, until cancelled. Raises when it has failed; it may be run again then."""
        while True:
            await self._on.wait()
            await unless(self._off.wait(), self._run_node())

    async def _run_node(self) -> None:
        await self.node.run()
        raise ContainerError("the process that runs this node's containers has died")


class Switches:
    """Turns switches as the annotations of their nodes say, while `run` runs; those of nodes that say nothing, on."""

    def __init__(self, client: Client, switches: Sequence[Switch]) -> None:
        self._switches = {switch.node.name: switch for switch in switches}
        self._cache = Cache(client, client.clock, client.rng)
        self._objects = self._cache.collection(Cached(Node, metadata_only=True))

    async def run(self) -> None:
        """Follows the annotations until it is cancelled."""
        self._objects.subscribe(self._changed)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._cache.run(), name="cache of nodes")
                await self._cache.wait_synced()
                self._turn_on_new_ones()
        finally:
            self._objects.unsubscribe(self._changed)

    def _turn_on_new_ones(self) -> None:
        known = {entry.key.name for entry in self._objects.entries()}
        for name in self._switches.keys() - known:
            self._switches[name].turn(on=True)

    def _changed(self, change: Change) -> None:
        entry = change.new
        switch = self._switches.get(entry.key.name) if entry is not None else None
        if entry is not None and switch is not None:
            found = self._objects.view(entry)
            switch.turn(on=(found.metadata.annotations or {}).get(POWER) != POWER_OFF)
