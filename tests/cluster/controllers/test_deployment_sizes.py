"""How large each ReplicaSet of a Deployment should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.cluster.controllers.workloads.deployments.replica_counts import Bounds, Size, grown, proportional, shrunk

TEN = Bounds(10, surge=3, unavailable=2)


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
        ([Size(10, 10)], Size(3, 0), [8]),
        ([Size(8, 8)], Size(5, 5), [3]),
        ([Size(8, 8)], Size(5, 0), [8]),
        ([Size(8, 7)], Size(5, 0), [8]),
        ([Size(8, 8), Size(5, 0)], Size(0, 0), [8, 0]),
        ([Size(4, 4), Size(4, 4)], Size(5, 5), [0, 3]),
        ([Size(8, 10)], Size(5, 2), [6]),
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
def test_old_pods_go_as_far_as_availability_allows(old: list[Size], new: Size, expected: list[int]) -> None:
    """Those that do not serve first, then those of the oldest version."""
    assert shrunk(TEN, old, new) == expected


@st.composite
def rollouts(draw: st.DrawFn) -> tuple[Bounds, list[Size], Size]:
    replicas = draw(st.integers(0, 30))
    surge, unavailable = draw(st.integers(0, 10)), draw(st.integers(0, replicas))
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=4))
    every = [Size(asked, draw(st.integers(0, asked + 3))) for asked in sizes]
    return Bounds(replicas, surge, unavailable), every[:-1], every[-1]


@given(rollouts())
def test_no_step_takes_more_than_it_may(rollout: tuple[Bounds, list[Size], Size]) -> None:
    """Whatever the sizes: serving pods stay at or above the bound, or are not touched."""
    bounds, old, new = rollout
    sizes = shrunk(bounds, old, new)
    assert all(0 <= after <= before.asked for after, before in zip(sizes, old, strict=True))
    serving = sum(min(size, each.serving) for size, each in zip(sizes, old, strict=True)) + new.serving
    before = sum(each.serving for each in (*old, new))
    assert serving >= min(before, bounds.fewest_available)


@given(rollouts())
def test_new_pods_never_exceed_the_surge(rollout: tuple[Bounds, list[Size], Size]) -> None:
    """Unless there were more before."""
    bounds, old, new = rollout
    total = sum(each.asked for each in (*old, new))
    after = total - new.asked + grown(bounds, new.asked, total)
    assert after <= max(bounds.most, total)


def test_scaling_amid_a_rollout_is_shared() -> None:
    """The example of Kubernetes' documentation: 8 old and 5 new pods of 10, scaled to 15."""
    fifteen = Bounds(15, surge=3, unavailable=2)
    assert proportional(fifteen, [Size(8, most=13), Size(5, most=13)], 13) == [11, 7]


@pytest.mark.parametrize(
    ("bounds", "sizes", "expected"),
    [
        (Bounds(0, 1, 0), [Size(5, most=6), Size(1, most=6)], [0, 0]),
        (Bounds(5, 0, 1), [Size(8, most=10), Size(2, most=10)], [4, 1]),
        (Bounds(10, 0, 1), [Size(5, most=10), Size(5, most=10)], [5, 5]),
        (Bounds(6, 0, 1), [Size(3), Size(2)], [4, 2]),
        (Bounds(11, 0, 1), [Size(5, most=10), Size(5, most=10)], [6, 5]),
    ],
    ids=["to nothing", "down", "as it is", "never sized before", "what cannot be divided"],
)
def test_shares_add_up_to_what_is_allowed(bounds: Bounds, sizes: list[Size], expected: list[int]) -> None:
    """The first takes what is left over."""
    assert proportional(bounds, sizes, sum(size.asked for size in sizes)) == expected
