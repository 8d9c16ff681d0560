"""Delays that grow after each failure, with jitter."""

from __future__ import annotations

import random

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Configures the delays between attempts, in seconds.

    The n-th delay is `initial * factor ** n`, at most `maximum`, shortened by a random share of up to `jitter`.
    """

    initial: float = 0.5
    factor: float = 2.0
    maximum: float = 30.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.initial <= self.maximum:
            raise ValueError(f"expected 0 < initial <= maximum, got {self.initial} and {self.maximum}")
        if self.factor < 1:
            raise ValueError(f"expected a factor of at least 1, got {self.factor}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"expected a jitter from 0 to 1, got {self.jitter}")


class BackoffDelays:
    """The delays of one series of attempts: call `next_delay` after each failure and `reset` after a success."""

    def __init__(self, backoff: Backoff, rng: random.Random) -> None:
        self._backoff = backoff
        self._random = rng
        self._upper = backoff.initial

    def next_delay(self) -> float:
        """Returns the next delay in seconds, which grows until it reaches the maximum."""
        upper = self._upper
        self._upper = min(upper * self._backoff.factor, self._backoff.maximum)
        return upper * (1 - self._backoff.jitter * self._random.random())

    def reset(self) -> None:
        """Starts the series again."""
        self._upper = self._backoff.initial
