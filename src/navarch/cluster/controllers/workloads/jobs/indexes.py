"""Sets of indexes, as a Job's status writes them: `0-3,7`; and the index of a pod."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from navarch.k8s.core.v1 import Pod

__all__ = ["INDEX", "format_indexes", "index_of", "parse_indexes", "pending_indexes"]

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Pod) -> int | None:
    """The part of the work that is the pod's; None if it has none."""
    text = pod.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def parse_indexes(text: str | None, completions: int) -> set[int]:
    """The indexes that are meant, of those that there are; what cannot be read is left out.

    >>> sorted(parse_indexes("0-2,5,7-9", 9))
    [0, 1, 2, 5, 7, 8]
    """
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first) + 1, completions)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """As short as can be.

    >>> format_indexes([5, 1, 0, 2, 7, 8])
    '0-2,5,7,8'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    separator = "," if run[-1] - run[0] == 1 else "-"
    return separator.join(map(str, run))


def pending_indexes(completions: int, busy: AbstractSet[int], count: int) -> list[int]:
    """The first so many indexes that nobody works on.

    >>> pending_indexes(6, {0, 2}, 3)
    [1, 3, 4]
    """
    found: list[int] = []
    for index in range(completions):
        if len(found) >= count:
            break
        if index not in busy:
            found.append(index)
    return found
