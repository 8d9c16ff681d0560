"""Durations as people write them: `3 weeks`, `1d12h`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

__all__ = ["counted_units"]

_DIGITS: Final = frozenset("0123456789")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ")


def counted_units(text: str) -> Iterator[tuple[str, str]]:
    """Every number that a word follows, and the word in small letters; between them may be spaces.

    >>> list(counted_units("1 Week, 12h and 3"))
    [('1', 'week'), ('12', 'h')]
    """
    count = ""
    for kind, characters in groupby(text, _kind):
        run = "".join(characters)
        if kind == "letters" and count:
            yield count, run.lower()
        count = run if kind == "digits" else count if kind == "space" else ""


def _kind(character: str) -> str:
    if character in _DIGITS:
        return "digits"
    if character in _LETTERS:
        return "letters"
    return "space" if character.isspace() else "other"
