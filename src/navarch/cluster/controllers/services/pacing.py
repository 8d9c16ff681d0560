"""Large services are written less often: what changes meanwhile comes with the next write."""

from __future__ import annotations

from typing import Final

from navarch._base.clock import Clock
from navarch.api import Key

_SECONDS_PER_POD: Final = 0.001
_MOST_SECONDS: Final = 1.0


class Pace:
    """When each service was last written, and how long to wait before it is written again."""

    def __init__(self) -> None:
        self._written: dict[Key, float] = {}

    def left(self, service: Key, pods: int, clock: Clock) -> float:
        """For how many more seconds a service with so many pods is to be left alone; 0 if it may be written."""
        pause = min(pods * _SECONDS_PER_POD, _MOST_SECONDS)
        return max(self._written.get(service, -pause) + pause - clock.monotonic(), 0.0)

    def wrote(self, service: Key, clock: Clock) -> None:
        """It was written now."""
        self._written[service] = clock.monotonic()
