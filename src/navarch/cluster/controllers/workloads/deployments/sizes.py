"""How large each ReplicaSet of a Deployment should be: arithmetic alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many pods a Deployment asks for, how many more there may be, and how many of them may be missing."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        """How many pods there may be at any time."""
        return self.replicas + self.surge

    @property
    def fewest_available(self) -> int:
        """How many pods have to serve at any time."""
        return self.replicas - self.unavailable


@dataclass(frozen=True, slots=True)
class Size:
    """A ReplicaSet: how many pods it asks for, how many of them serve, and what `Bounds.most` was when it was last sized.

    Of more pods that serve than it asks for some are about to go: they do not count.
    """

    asked: int
    available: int = 0
    most: int | None = None

    @property
    def serving(self) -> int:
        """How many of its pods serve, and will."""
        return min(self.available, self.asked)

    @property
    def lacking(self) -> int:
        """How many of its pods do not serve."""
        return self.asked - self.serving


def grown(bounds: Bounds, new: int, total: int) -> int:
    """The size of the new ReplicaSet, which has `new` of `total` pods: as large as the surge allows.

    >>> grown(Bounds(10, surge=3, unavailable=2), new=0, total=10)
    3
    """
    if new > bounds.replicas:
        return bounds.replicas
    room = max(bounds.most - total, 0)
    return new + min(room, bounds.replicas - new)


def shrunk(bounds: Bounds, old: Sequence[Size], new: Size) -> list[int]:
    """The sizes of the old ReplicaSets, the oldest first: as small as availability allows.

    Pods that do not serve go first: they are no loss, and would keep new ones from coming.
    """
    sizes = [size.asked for size in old]
    may_go = sum(sizes) + new.asked - bounds.fewest_available - new.lacking
    if may_go <= 0:
        return sizes
    sizes = _taken(sizes, [size.lacking for size in old], may_go)
    spare = sum(size.serving for size in (*old, new)) - bounds.fewest_available
    return _taken(sizes, sizes, max(spare, 0))


def _taken(sizes: Sequence[int], at_most: Sequence[int], count: int) -> list[int]:
    """The sizes after `count` were taken away, from the first on, and from each no more than it can give."""
    left = []
    for size, limit in zip(sizes, at_most, strict=True):
        taken = min(limit, count)
        count -= taken
        left.append(size - taken)
    return left


def proportional(bounds: Bounds, sizes: Sequence[Size], now: int) -> list[int]:
    """The sizes of all ReplicaSets that have pods, the largest first, after the Deployment was scaled amid a rollout.

    Each grows or shrinks by its share, so that the rollout neither hurries nor falls back; what cannot be divided goes to
    the first. `now` is how many pods there are, for a ReplicaSet that does not say what it was sized for.
    """
    allowed = bounds.most if bounds.replicas else 0
    to_add, added, result = allowed - sum(size.asked for size in sizes), 0, []
    for size in sizes:
        share = _share(bounds, size, now, to_add, added)
        added += share
        result.append(size.asked + share)
    if result:
        result[0] = max(result[0] + to_add - added, 0)
    return result


def _share(bounds: Bounds, size: Size, now: int, to_add: int, added: int) -> int:
    if not size.asked or to_add in {0, added}:
        return 0
    share, left = _fraction(bounds, size, now), to_add - added
    return min(share, left) if to_add > 0 else max(share, left)


def _fraction(bounds: Bounds, size: Size, now: int) -> int:
    if not bounds.replicas:
        return -size.asked
    before = size.most or now
    if not before:
        return 0
    return _rounded(size.asked * bounds.most, before) - size.asked


def _rounded(numerator: int, denominator: int) -> int:
    """The nearest integer; a half goes up."""
    return (2 * numerator + denominator) // (2 * denominator)
