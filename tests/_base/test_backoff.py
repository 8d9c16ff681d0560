"""Waiting longer after each failure."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch._base.backoff import Backoff, BackoffDelays


def test_delays_grow_to_the_maximum_and_start_again_after_reset() -> None:
    """Without jitter the series is exactly initial * factor ** n, capped."""
    delays = BackoffDelays(Backoff(initial=1, factor=3, maximum=10, jitter=0), random.Random(0))
    assert [delays.next_delay() for _ in range(4)] == [1, 3, 9, 10]
    delays.reset()
    assert delays.next_delay() == 1


@given(st.floats(min_value=0, max_value=1), st.integers())
def test_jitter_only_shortens_and_follows_the_seed(jitter: float, seed: int) -> None:
    """BackoffDelays stay within the jitter's share, and the same seed gives the same delays."""
    backoff = Backoff(initial=1, factor=2, maximum=8, jitter=jitter)
    first, second = (BackoffDelays(backoff, random.Random(seed)) for _ in range(2))
    for upper in (1, 2, 4, 8, 8):
        delay = first.next_delay()
        assert upper * (1 - jitter) <= delay <= upper
        assert delay == second.next_delay()


@pytest.mark.parametrize(
    "options", [{"initial": 0}, {"initial": 2, "maximum": 1}, {"factor": 0.5}, {"jitter": 1.5}, {"jitter": -0.1}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    """A backoff that would not back off is a mistake of the caller."""
    with pytest.raises(ValueError, match="expected"):
        Backoff(**options)
