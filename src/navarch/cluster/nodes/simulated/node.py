"""`SimulatedNode`: the Node object of one simulated node, and its faults."""

from __future__ import annotations

from typing import Literal

from navarch.client import Client
from navarch.cluster.nodes.node_status import Heartbeat, Profile, node_object, register

Fault = Literal["cut", "frozen", "dead"]


class SimulatedNode:
    """A node without a machine. With a `fault` it sends no heartbeat."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.fault: Fault | None = None
        self.since = 0.0
        """When the fault began, by the clock that never runs backwards."""
        self._heartbeat: Heartbeat | None = None

    @property
    def name(self) -> str:
        """Returns its name."""
        return self.profile.name

    @property
    def address(self) -> str:
        """Returns its address, which is not reachable."""
        return self.profile.address

    @property
    def is_up(self) -> bool:
        """Returns whether it has no fault."""
        return self.fault is None

    @property
    def has_joined(self) -> bool:
        """Returns whether its Node object is registered."""
        return self._heartbeat is not None

    async def beat(self, client: Client) -> None:
        """Sends a heartbeat; registers the Node object first."""
        if self._heartbeat is None:
            known = await register(client, node_object(self.profile, client.clock.now()))
            self._heartbeat = Heartbeat(client, known, client.clock)
        await self._heartbeat.beat()
