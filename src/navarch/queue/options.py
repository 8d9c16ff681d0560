"""What can be chosen about a queue."""

from __future__ import annotations

from dataclasses import dataclass

from navarch._base.backoff import Backoff

__all__ = ["LOW", "NORMAL", "RECONCILE_BACKOFF", "QueueOptions"]

RECONCILE_BACKOFF = Backoff(initial=0.005, maximum=1000.0)
"""The delays of a key that fails again and again, as controller-runtime has them."""

NORMAL = 0
"""The priority of a key that something happened to."""

LOW = -100
"""The priority of a key that is only looked at because the process has just started: the initial list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """How long keys wait.

    `backoff` gives the delays of a key that fails again and again. `ageing` is what one step of priority is worth in
    seconds of waiting: with the default a key of priority `LOW` is passed over for `NORMAL` ones for at most 100 s.
    """

    backoff: Backoff = RECONCILE_BACKOFF
    ageing: float = 1.0

    def __post_init__(self) -> None:
        if not self.ageing > 0:
            raise ValueError(f"expected an ageing of more than 0 seconds, got {self.ageing}")
