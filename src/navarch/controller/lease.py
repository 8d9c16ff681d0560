"""`LeaseLock`: one Lease as it was last seen, and how to hold it; compatible with client-go's election.

The lock judges by its own clock how long the Lease has not changed. The times in the Lease come from other machines'
clocks and are there for people.
"""

from __future__ import annotations

import math

from navarch._base.clock import Clock
from navarch.api import MicroTime
from navarch.client import Client, WatchEvent
from navarch.errors import AlreadyExists, Conflict, NotFound
from navarch.k8s.coordination.v1 import Lease

__all__ = ["LeaseLock"]

_RELEASED_SECONDS = 1


class LeaseLock:
    """A Lease that at most one candidate holds. Every write names the resourceVersion that it was made from."""

    def __init__(
        self, client: Client, clock: Clock, *, name: str, namespace: str, identity: str, lease_seconds: float
    ) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._known: Lease | None = None
        self._version = 0
        self._free_at = -math.inf
        self.holder = ""
        """Who held it when it was last seen; empty if nobody does."""

    @property
    def is_ours(self) -> bool:
        """Whether this process held the Lease when it was last seen."""
        return self.holder == self._identity

    @property
    def is_gone(self) -> bool:
        """Whether the Lease did not exist when it was last read."""
        return self._known is None

    def seconds_until_free(self) -> float:
        """Returns the seconds until the Lease may be acquired; 0 if it may be now. A deleted Lease still counts."""
        if not self.holder or self.is_ours:
            return 0.0
        return max(0.0, self._free_at - self._clock.monotonic())

    async def read(self) -> None:
        """Reads the Lease."""
        try:
            self._saw(await self._client.get(Lease, self._name, namespace=self._namespace))
        except NotFound:
            self._known = None

    def heard(self, change: WatchEvent[Lease]) -> None:
        """Takes over a Lease from the watch, unless a newer one is known."""
        if _version(change.object) <= self._version:
            return
        self._saw(change.object)
        if change.type == "DELETED":
            self._known = None

    async def hold(self) -> bool:
        """Writes the Lease with this process as its holder; returns False after a conflict, when it has read the Lease again.

        Raises `NotFound` if the namespace does not exist.
        """
        try:
            self._saw(await self._write(self._claim()))
        except (Conflict, AlreadyExists):
            await self.read()
            return False
        except NotFound:
            if self._known is None:
                raise
            self._known = None
            return False
        return True

    async def release(self) -> None:
        """Releases the Lease if this process holds it, so that no candidate has to wait for its end.

        It reads the Lease first: a claim whose answer was lost may have succeeded.
        """
        await self.read()
        while self.is_ours and self._known is not None:
            try:
                self._saw(await self._client.replace(self._released(self._known)))
            except (Conflict, NotFound):
                await self.read()

    async def _write(self, lease: Lease) -> Lease:
        if self._known is None:
            return await self._client.create(lease)
        return await self._client.replace(lease)

    def _claim(self) -> Lease:
        """Returns the Lease with this process as its holder. As with client-go, a new holder counts as one more transition."""
        now = MicroTime.of(self._clock.now())
        claim = Lease(name=self._name, namespace=self._namespace) if self._known is None else self._known.copy()
        spec = claim.spec
        if self._known is not None and not self.is_ours:
            spec.lease_transitions = (spec.lease_transitions or 0) + 1
        if spec.acquire_time is None or not self.is_ours:
            spec.acquire_time = now
        spec.lease_transitions = spec.lease_transitions or 0
        spec.holder_identity = self._identity
        spec.lease_duration_seconds = math.ceil(self._lease_seconds)
        spec.renew_time = now
        return claim

    def _released(self, known: Lease) -> Lease:
        free = known.copy()
        now = MicroTime.of(self._clock.now())
        free.spec.holder_identity = None
        free.spec.lease_duration_seconds = _RELEASED_SECONDS
        free.spec.acquire_time = free.spec.renew_time = now
        return free

    def _saw(self, lease: Lease) -> None:
        """Records the Lease. Only a change of the spec is a sign of life: anybody may change labels."""
        if self._known is None or lease.spec != self._known.spec or lease.metadata.uid != self._known.metadata.uid:
            seconds = lease.spec.lease_duration_seconds or self._lease_seconds
            self._free_at = self._clock.monotonic() + seconds
        self._known = lease
        self._version = _version(lease)
        self.holder = lease.spec.holder_identity or ""


def _version(lease: Lease) -> int:
    return int(lease.metadata.resource_version)
