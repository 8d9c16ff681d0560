"""Integers as Go reads them: 64 bits, in time that grows with the text.

Python's `int` takes numbers of any length, in time that grows with the square of it, and refuses more than 4,300 digits
with an error of its own. Texts of the network are read by this instead.
"""

from __future__ import annotations

from typing import Final

__all__ = ["parse_int64"]

_MOST_DIGITS: Final = 19
_LARGEST: Final = 2**63 - 1


def parse_int64(text: str) -> int | None:
    """The number that a text is, with or without a sign; None if it is none, or does not fit 64 bits.

    >>> parse_int64("-007"), parse_int64("9" * 20), parse_int64("1_000"), parse_int64("")
    (-7, None, None, None)
    """
    is_negative = text[:1] == "-"
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if not (digits.isascii() and digits.isdecimal()):
        return None
    significant = digits.lstrip("0")
    if len(significant) > _MOST_DIGITS:
        return None
    number = int(significant or "0")
    if number > _LARGEST + is_negative:
        return None
    return -number if is_negative else number
