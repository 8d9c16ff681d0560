"""Warnings of a reply: none twice, none that a header cannot carry, and no more of them than Kubernetes sends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["bounded_warnings"]

_MOST_CHARACTERS: Final = 4 * 1024
"""Of all warnings together; beyond that each is cut."""
_CUT_TO: Final = 256
_CONTROL_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


def bounded_warnings(given: Sequence[str]) -> list[str]:
    """Returns the warnings that are sent: all of them, or, if they are long, the beginnings of the first.

    >>> len(bounded_warnings([f"{number:0300}" for number in range(100)]))
    16
    """
    distinct = [text for text in dict.fromkeys(given) if not _CONTROL_CHARACTER.search(text)]
    if sum(map(len, distinct)) <= _MOST_CHARACTERS:
        return distinct
    return list(_cut(distinct))


def _cut(texts: Iterable[str]) -> Iterable[str]:
    length = 0
    for text in texts:
        if length >= _MOST_CHARACTERS:
            return
        yield text[:_CUT_TO]
        length += min(len(text), _CUT_TO)
