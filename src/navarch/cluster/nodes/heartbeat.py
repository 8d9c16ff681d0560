"""Signs of life of one node: its Lease every ten seconds, its conditions every five minutes."""

from __future__ import annotations

import logging
from typing import Final

from navarch._base.clock import Clock
from navarch.api import MicroTime, OwnerReference, to_builtins
from navarch.client import Client, StrategicPatch
from navarch.cluster.nodes.registration import conditions
from navarch.errors import AlreadyExists, Conflict, NavarchError, NotFound
from navarch.k8s.coordination.v1 import Lease, LeaseSpec
from navarch.k8s.core.v1 import Node

__all__ = ["LEASES", "Heartbeat"]

LEASES: Final = "kube-node-lease"
_RENEWAL_SECONDS: Final = 10.0
_LEASE_SECONDS: Final = 40
_STATUS_SECONDS: Final = 300.0

_log = logging.getLogger("navarch.nodes")


class Heartbeat:
    """Says that a node lives. Whoever watches may doubt it 40 seconds after the last sign."""

    def __init__(self, client: Client, node: Node, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._clock = clock.liveness
        self._lease: Lease | None = None
        self._said_at = self._clock.monotonic()

    async def run(self) -> None:
        """Gives signs of life until it is cancelled; a server that does not answer is asked again at the next one."""
        while True:
            try:
                await self.beat()
            except NavarchError as error:
                _log.warning("node %s: no sign of life could be given: %s", self._node.name, error)
            await self._clock.sleep(_RENEWAL_SECONDS)

    async def beat(self) -> None:
        """One sign of life."""
        try:
            self._lease = await self._renewed()
        except (Conflict, AlreadyExists, NotFound):
            self._lease = await self._found()
            self._lease = await self._renewed()
        if self._clock.monotonic() - self._said_at >= _STATUS_SECONDS:
            await self._say_conditions()

    async def _found(self) -> Lease | None:
        try:
            return await self._client.get(Lease, self._node.name, namespace=LEASES)
        except NotFound:
            return None

    async def _renewed(self) -> Lease:
        now = MicroTime.of(self._clock.now())
        if self._lease is None:
            return await self._client.create(self._first(now))
        self._lease.spec.holder_identity = self._node.name
        self._lease.spec.lease_duration_seconds = _LEASE_SECONDS
        self._lease.spec.renew_time = now
        return await self._client.replace(self._lease)

    def _first(self, now: MicroTime) -> Lease:
        spec = LeaseSpec(holder_identity=self._node.name, lease_duration_seconds=_LEASE_SECONDS, renew_time=now)
        lease = Lease(name=self._node.name, namespace=LEASES, spec=spec)
        owner = OwnerReference(api_version="v1", kind="Node", name=self._node.name, uid=self._node.metadata.uid)
        lease.metadata.owner_references = [owner]
        return lease

    async def _say_conditions(self) -> None:
        """The transition times of conditions that have not changed are left alone."""
        said = [to_builtins(condition) for condition in conditions(self._clock.now())]
        known = {known.type: known for known in (self._node.status.conditions or [])}
        for condition in said:
            if known.get(condition["type"]) and known[condition["type"]].status == condition["status"]:
                del condition["lastTransitionTime"]
        patch = StrategicPatch({"status": {"conditions": said}})
        self._node = await self._client.patch(Node, self._node.name, patch, subresource="status")
        self._said_at = self._clock.monotonic()
