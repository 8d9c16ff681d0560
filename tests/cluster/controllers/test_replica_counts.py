"""How large each ReplicaSet of a Deployment should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.cluster.controllers.workloads.deployments.replica_counts import (
    ReplicaBounds,
    ReplicaSetSize,
    grown,
    proportional,
    shrunk,
)

TEN = ReplicaBounds(10, surge=3, unavailable=2)


@pytest.mark.parametrize(
    ("new", "total", "expected"),
    [(0, 10, 3), (0, 13, 0), (5, 13, 5), (5, 9, 9), (9, 9, 10), (12, 12, 10), (10, 10, 10)],
)
def test_new_pods_come_as_far_as_the_surge_allows(new: int, total: int, expected: int) -> None:
    """And never more than are asked for; what is too large becomes as large as is asked for."""
    assert grown(TEN, new, total) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([ReplicaSetSize(10, 10)], ReplicaSetSize(3, 0), [8]),
        ([ReplicaSetSize(8, 8)], ReplicaSetSize(5, 5), [3]),
        ([ReplicaSetSize(8, 8)], ReplicaSetSize(5, 0), [8]),
        ([ReplicaSetSize(8, 7)], ReplicaSetSize(5, 0), [8]),
        ([ReplicaSetSize(8, 8), ReplicaSetSize(5, 0)], ReplicaSetSize(0, 0), [8, 0]),
        ([ReplicaSetSize(4, 4), ReplicaSetSize(4, 4)], ReplicaSetSize(5, 5), [0, 3]),
        ([ReplicaSetSize(8, 10)], ReplicaSetSize(5, 2), [6]),
    ],
    ids=[
        "first step",
        "new serve",
        "new do not",
        "one old lost",
        "broken in between",
        "oldest first",
        "some about to go",
    ],
)
def test_old_pods_go_as_far_as_availability_allows(
    old: list[ReplicaSetSize], new: ReplicaSetSize, expected: list[int]
) -> None:
    """Those that do not serve first, then those of the oldest version."""
    assert shrunk(TEN, old, new) == expected


@st.composite
def rollouts(draw: st.DrawFn) -> tuple[ReplicaBounds, list[ReplicaSetSize], ReplicaSetSize]:
    replicas = draw(st.integers(0, 30))
    surge, unavailable = draw(st.integers(0, 10)), draw(st.integers(0, replicas))
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=4))
    every = [ReplicaSetSize(asked, draw(st.integers(0, asked + 3))) for asked in sizes]
    return ReplicaBounds(replicas, surge, unavailable), every[:-1], every[-1]


@given(rollouts())
def test_no_step_takes_more_than_it_may(rollout: tuple[ReplicaBounds, list[ReplicaSetSize], ReplicaSetSize]) -> None:
    """Whatever the sizes: serving pods stay at or above the bound, or are not touched."""
    bounds, old, new = rollout
    sizes = shrunk(bounds, old, new)
    assert all(0 <= after <= before.asked for after, before in zip(sizes, old, strict=True))
    serving = sum(min(size, each.serving) for size, each in zip(sizes, old, strict=True)) + new.serving
    before = sum(each.serving for each in (*old, new))
    assert serving >= min(before, bounds.fewest_available)


@given(rollouts())
def test_new_pods_never_exceed_the_surge(rollout: tuple[ReplicaBounds, list[ReplicaSetSize], ReplicaSetSize]) -> None:
    """Unless there were more before."""
    bounds, old, new = rollout
    total = sum(each.asked for each in (*old, new))
    after = total - new.asked + grown(bounds, new.asked, total)
    assert after <= max(bounds.most, total)


def test_scaling_amid_a_rollout_is_shared() -> None:
    """The example of Kubernetes' documentation: 8 old and 5 new pods of 10, scaled to 15."""
    fifteen = ReplicaBounds(15, surge=3, unavailable=2)
    assert proportional(fifteen, [ReplicaSetSize(8, most=13), ReplicaSetSize(5, most=13)], 13) == [11, 7]


@pytest.mark.parametrize(
    ("bounds", "sizes", "expected"),
    [
        (ReplicaBounds(0, 1, 0), [ReplicaSetSize(5, most=6), ReplicaSetSize(1, most=6)], [0, 0]),
        (ReplicaBounds(5, 0, 1), [ReplicaSetSize(8, most=10), ReplicaSetSize(2, most=10)], [4, 1]),
        (ReplicaBounds(10, 0, 1), [ReplicaSetSize(5, most=10), ReplicaSetSize(5, most=10)], [5, 5]),
        (ReplicaBounds(6, 0, 1), [ReplicaSetSize(3), ReplicaSetSize(2)], [4, 2]),
        (ReplicaBounds(11, 0, 1), [ReplicaSetSize(5, most=10), ReplicaSetSize(5, most=10)], [6, 5]),
    ],
    ids=["to nothing", "down", "as it is", "never sized before", "what cannot be divided"],
)
def test_shares_add_up_to_what_is_allowed(
    bounds: ReplicaBounds, sizes: list[ReplicaSetSize], expected: list[int]
) -> None:
    """The first takes what is left over."""
    assert proportional(bounds, sizes, sum(size.asked for size in sizes)) == expected
