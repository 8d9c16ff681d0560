"""How many examples a test with generated input has: all in `make e2e`, an eighth in `make test`.

The profile `quick` of tests/conftest.py is for tests that have Hypothesis' own number; `examples` is for all others.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "repeatable")
QUICK, FULL = "quick", "full"
_LEAST = 10


def quick(number: int) -> int:
    """Returns an eighth of that many."""
    return max(_LEAST, number // 8)


def examples(number: int, **more: Any) -> settings:
    """Returns settings with that many examples; in `make test` with an eighth."""
    return settings(max_examples=quick(number) if PROFILE == QUICK else number, **more)
