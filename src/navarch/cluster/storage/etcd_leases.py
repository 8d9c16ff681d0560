"""Keys that etcd forgets by itself after an hour: events, as in Kubernetes."""

from __future__ import annotations

from typing import Final

from navarch._base.clock import Clock
from navarch.etcd.leases import Leases

_EVENTS: Final = "/registry/events/"
_SECONDS: Final = 3600
_SHARED_SECONDS: Final = 60
_SHARED_KEYS: Final = 1000


class EventLeases:
    """The leases that events hang on. Those written within a minute share one, up to a thousand; it lasts that much longer."""

    def __init__(self, leases: Leases, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._id = 0
        self._until = 0.0
        self._left = 0

    async def lease_of(self, key: str) -> int:
        """The lease for what is written to the key now; 0 for what stays."""
        if not key.startswith(_EVENTS):
            return 0
        if self._left <= 0 or self._clock.monotonic() >= self._until:
            self._id = (await self._leases.grant(_SECONDS + _SHARED_SECONDS)).id
            self._until, self._left = self._clock.monotonic() + _SHARED_SECONDS, _SHARED_KEYS
        self._left -= 1
        return self._id
