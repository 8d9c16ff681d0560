"""Histories that chance has made, of several faults at once: nothing acknowledged is lost, and all ends well."""

from __future__ import annotations

from typing import Any

import pytest

from exploring import explored


def _seeds(number: int) -> list[Any]:
    """So many histories, half of them in `make e2e` alone."""
    return [pytest.param(seed, marks=[pytest.mark.long] if seed % 2 else []) for seed in range(number)]


@pytest.mark.parametrize("seed", _seeds(16))
def test_a_cluster_survives_whatever_leaves_enough_members_their_data(seed: int) -> None:
    """It becomes what is asked for in the end. No quorum is given away, nothing is forced, and no backup is gone back to."""
    explorer, wrong = explored(seed, survivable=True)
    assert not wrong, f"{wrong}; what had happened: {explorer.happened}"


@pytest.mark.parametrize("seed", _seeds(8))
def test_data_is_given_up_only_where_it_is_lost_and_that_is_allowed(seed: int) -> None:
    """Members lose their data at will: a cluster goes on from a survivor or from its backup, or says that it cannot."""
    explorer, wrong = explored(seed, survivable=False)
    assert not wrong, f"{wrong}; what had happened: {explorer.happened}"
