"""One simulated node: what it says of itself, and whether it can be reached."""

from __future__ import annotations

from typing import Literal

from navarch.client import Client
from navarch.cluster.nodes.node_status import Heartbeat, Profile, node_object, register

Fault = Literal["cut", "frozen", "dead"]


class SimulatedNode:
    """A node without a machine. With a `fault` it gives no sign of life."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.fault: Fault | None = None
        self.since = 0.0
        """When the fault began, by the clock that never runs backwards."""
        self._heartbeat: Heartbeat | None = None

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return self.profile.name

    @property
    def address(self) -> str:
        """Its address, which leads nowhere."""
        return self.profile.address

    @property
    def is_up(self) -> bool:
        """Whether it works, and can be reached."""
        return self.fault is None

    @property
    def has_joined(self) -> bool:
        """Whether the cluster knows it."""
        return self._heartbeat is not None

    async def beat(self, client: Client) -> None:
        """A sign of life; the first one is that it joins the cluster."""
        if self._heartbeat is None:
            known = await register(client, node_object(self.profile, client.clock.now()))
            self._heartbeat = Heartbeat(client, known, client.clock)
        await self._heartbeat.beat()
