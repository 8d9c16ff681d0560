"""How often each key failed in a row."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Generic, TypeVar

from navarch._base.backoff import Backoff, Delays

K = TypeVar("K", bound=Hashable)


class Failures(Generic[K]):
    """The failures of keys and the delays that follow from them; a key that does not fail costs nothing."""

    def __init__(self, backoff: Backoff, rng: random.Random) -> None:
        self._backoff = backoff
        self._random = rng
        self._series: dict[K, tuple[int, Delays]] = {}

    def count(self, key: K) -> int:
        """How often it failed since it was last forgotten."""
        series = self._series.get(key)
        return series[0] if series else 0

    def next_delay(self, key: K) -> float:
        """Counts one failure more; how many seconds to wait because of it."""
        count, delays = self._series.get(key) or (0, Delays(self._backoff, self._random))
        self._series[key] = count + 1, delays
        return delays.next_delay()

    def forget(self, key: K) -> None:
        self._series.pop(key, None)
