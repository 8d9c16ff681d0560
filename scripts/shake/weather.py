"""How late things come: drawn from a seed, for each test anew."""

from __future__ import annotations

import os
import random
from typing import Final, NamedTuple

__all__ = ["Odds", "Weather", "current_test"]

_RARE_SECONDS: Final = (0.5, 3.0)


class Odds(NamedTuple):
    """`often` is the share of short delays, of `seconds` on average; `rarely` that of delays of up to three seconds."""

    often: float
    seconds: float
    rarely: float


class Weather:
    """The delays of one seed, each `strength` times as long as its odds say.

    Each place draws for itself and begins anew with each test: a test has the same delays alone and among others.
    """

    def __init__(self, seed: str, strength: float) -> None:
        self._seed = seed
        self._strength = strength
        self._test = ""
        self._is_calm = False
        self._places: dict[str, random.Random] = {}

    def delay(self, place: str, odds: Odds) -> float:
        """How many seconds the next one at `place` is late, mostly none."""
        self._turn()
        if self._is_calm:
            return 0.0
        if place not in self._places:
            self._places[place] = random.Random(f"{self._seed} {self._test} {place}")  # noqa: S311 - no secret
        return self._strength * _drawn(self._places[place], odds)

    def calm(self) -> None:
        """Nothing is late any more until the next test."""
        self._turn()
        self._is_calm = True

    def _turn(self) -> None:
        """Begins anew if there is another test."""
        if self._test != (test := current_test()):
            self._test, self._is_calm, self._places = test, False, {}


def current_test() -> str:
    """The test that runs, here or in the process that started this one; empty outside of tests."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


def _drawn(rng: random.Random, odds: Odds) -> float:
    """Each delay draws as often as any other, so that a change of odds moves none of those that follow."""
    roll, short, long = rng.random(), rng.expovariate(1 / odds.seconds), rng.uniform(*_RARE_SECONDS)
    if roll < odds.rarely:
        return long
    return min(short, 6 * odds.seconds) if roll < odds.rarely + odds.often else 0.0
