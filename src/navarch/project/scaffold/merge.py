"""`merge`: combines two changes of one text, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

__all__ = ["merge"]


def merge(base: str, ours: str, theirs: str) -> str | None:
    r"""Returns `base` with the changes of both; None if both changed the same place, or adjacent lines, in different ways.

    A line that only one side inserted is in the result. The same change on both sides counts once.

    >>> merge("a\nb\nc\n", "A\nb\nc\n", "a\nb\nc\nd\n")
    'A\nb\nc\nd\n'
    >>> merge("a\n", "b\n", "c\n") is None
    True
    """
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    merged: list[str] = []
    for old, mine, other in _chunks(_lines(base), _lines(ours), _lines(theirs)):
        if mine in (old, other):
            merged += other
        elif other == old:
            merged += mine
        else:
            return None
    return "".join(merged)


def _lines(text: str) -> list[str]:
    """Returns the lines with their ends; unlike for `str.splitlines`, only a line feed ends a line."""
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole]
    return [*lines, rest] if rest else lines


Chunk = tuple[Sequence[str], Sequence[str], Sequence[str]]


def _chunks(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Chunk]:
    """Yields the three texts in parts: those that all have, and between them those that differ."""
    in_base = in_ours = in_theirs = 0
    for start, mine, other, size in _common(base, ours, theirs):
        yield base[in_base:start], ours[in_ours:mine], theirs[in_theirs:other]
        same = base[start : start + size]
        yield same, same, same
        in_base, in_ours, in_theirs = start + size, mine + size, other + size
    yield base[in_base:], ours[in_ours:], theirs[in_theirs:]


def _common(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yields the runs of base lines that both sides kept: where they are in each text, and how long they are."""
    mine = SequenceMatcher(None, base, ours, autojunk=False).get_matching_blocks()
    other = SequenceMatcher(None, base, theirs, autojunk=False).get_matching_blocks()
    left = right = 0
    while left < len(mine) and right < len(other):
        one, two = mine[left], other[right]
        start, end = max(one.a, two.a), min(one.a + one.size, two.a + two.size)
        if start < end:
            yield start, one.b + start - one.a, two.b + start - two.a, end - start
        if one.a + one.size < two.a + two.size:
            left += 1
        else:
            right += 1
