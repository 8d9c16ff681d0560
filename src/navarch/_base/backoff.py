"""Waiting longer after each failure, and not in step with everybody else."""

from __future__ import annotations

import random

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait between attempts, in seconds.

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


class Delays:
    """The delays of one series of attempts: `next_delay` after each failure, `reset` after a success."""

    def __init__(self, backoff: Backoff, rng: random.Random) -> None:
        self._backoff = backoff
        self._random = rng
        self._upper = backoff.initial

    def next_delay(self) -> float:
        """The next delay in seconds; longer than the last one until the maximum is reached."""
        upper = self._upper
        self._upper = min(upper * self._backoff.factor, self._backoff.maximum)
        return upper * (1 - self._backoff.jitter * self._random.random())

    def reset(self) -> None:
        """Begins the series again."""
        self._upper = self._backoff.initial
