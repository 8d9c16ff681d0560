"""Options and metrics of a work queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from navarch._base.backoff import Backoff

RECONCILE_BACKOFF = Backoff(initial=0.005, maximum=1000.0)
"""The delays of a key that fails repeatedly, as in controller-runtime."""


class QueueMetrics(Protocol):
    """Receives the events of a queue as they happen.

    Gauges (the depth, the longest running work) are read from the queue instead.
    """

    def added(self) -> None:
        """Called when a key that was not waiting starts to wait."""
        ...

    def taken(self, waited: float) -> None:
        """Called when a worker gets a key; `waited` is in seconds."""
        ...

    def finished(self, seconds: float) -> None:
        """Called when the work on a key ends, after so many seconds."""
        ...

    def retried(self) -> None:
        """Called when a key failed and is to be retried."""
        ...


class _Silent:
    def added(self) -> None: ...

    def taken(self, waited: float) -> None: ...

    def finished(self, seconds: float) -> None: ...

    def retried(self) -> None: ...


SILENT: QueueMetrics = _Silent()


NORMAL = 0
"""The priority of a key whose object changed."""

LOW = -100
"""The priority of a key from the initial list, which is reconciled only because the process has just started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """Configures how long keys wait.

    `backoff` gives the delays of a key that fails repeatedly. `ageing` is the number of seconds of waiting that raise a
    key by one step of priority: with the default, `NORMAL` keys overtake a key of priority `LOW` for at most 100 s.
    """

    backoff: Backoff = RECONCILE_BACKOFF
    ageing: float = 1.0

    def __post_init__(self) -> None:
        if not self.ageing > 0:
            raise ValueError(f"expected an ageing of more than 0 seconds, got {self.ageing}")
