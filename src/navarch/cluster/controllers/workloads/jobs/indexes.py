"""Sets of indexes, as a Job's status writes them: `0-3,7`; and the index of a pod.

A few characters name two billion indexes: a set is kept as its runs, and costs what its text does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Self

from navarch.api.integers import parse_int64
from navarch.k8s.core.v1 import Pod

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Pod) -> int | None:
    """The part of the work that is the pod's; None if it has none."""
    text = pod.annotations.get(INDEX, "")
    return parse_int64(text) if text.isdecimal() else None


@dataclass(frozen=True, slots=True)
class Indexes:
    """A set of indexes: its runs in order, none of them empty, with at least one index missing between two of them.

    >>> Indexes.of([5, 1, 0, 2]) | Indexes.of([3])
    Indexes(runs=(range(0, 4), range(5, 6)))
    """

    runs: tuple[range, ...] = ()

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Self:
        """Those that are given, in any order."""
        return cls.merged(range(index, index + 1) for index in indexes)

    @classmethod
    def merged(cls, runs: Iterable[range]) -> Self:
        """All that are in any of the runs."""
        merged: list[range] = []
        for run in sorted(filter(None, runs), key=_first):
            if merged and run.start <= merged[-1].stop:
                merged[-1] = range(merged[-1].start, max(merged[-1].stop, run.stop))
            else:
                merged.append(run)
        return cls(tuple(merged))

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def __contains__(self, index: int | None) -> bool:
        if index is None:
            return False
        place = bisect_right(self.runs, index, key=_first)
        return place > 0 and index in self.runs[place - 1]

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes.merged((*self.runs, *other.runs))

    def common(self, other: Indexes) -> int:
        """Returns how many indexes are in both."""
        return len(self) + len(other) - len(self | other)

    def gaps(self, end: int) -> Iterator[range]:
        """The runs of indexes below `end` that are not in it."""
        begin = 0
        for run in self.runs:
            if begin < min(run.start, end):
                yield range(begin, min(run.start, end))
            begin = run.stop
        if begin < end:
            yield range(begin, end)


def _first(run: range) -> int:
    return run.start


def parse_indexes(text: str | None, completions: int) -> Indexes:
    """The indexes that are meant, of those that there are; what cannot be read is left out.

    >>> parse_indexes("0-2,5,7-9", 9)
    Indexes(runs=(range(0, 3), range(5, 6), range(7, 9)))
    """
    runs: list[range] = []
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        begin, end = parse_int64(first), parse_int64(last or first)
        if begin is not None and end is not None and begin >= 0:
            runs.append(range(begin, min(end + 1, completions)))
    return Indexes.merged(runs)


def format_indexes(indexes: Indexes) -> str:
    """As short as can be.

    >>> format_indexes(Indexes.of([5, 1, 0, 2, 7, 8]))
    '0-2,5,7,8'
    """
    return ",".join(map(_run, indexes.runs))


def _run(run: range) -> str:
    if len(run) == 1:
        return str(run[0])
    separator = "," if len(run) == 2 else "-"
    return f"{run[0]}{separator}{run[-1]}"


def pending_indexes(completions: int, busy: Indexes, count: int) -> list[int]:
    """The first so many indexes that nobody works on.

    >>> pending_indexes(6, Indexes.of([0, 2]), 3)
    [1, 3, 4]
    """
    return list(islice(chain.from_iterable(busy.gaps(completions)), count))
