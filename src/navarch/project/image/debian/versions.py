"""Debian's versions, in Debian's order."""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from navarch.errors import ImageError

_VERSION: Final = re.compile(
    r"(?:(?P<epoch>[0-9]+):)?(?P<upstream>[A-Za-z0-9.+~-]+)-(?P<revision>[A-Za-z0-9.+~]+)|"
    r"(?:(?P<epoch_alone>[0-9]+):)?(?P<upstream_alone>[A-Za-z0-9.+~]+)"
)
_PARTS: Final = re.compile(r"([^0-9]*)([0-9]*)")
_END: Final = 0
_LETTERS_FIRST: Final = 256


@total_ordering
class DebianVersion:
    """A version `[epoch:]upstream[-revision]`; compares as `dpkg --compare-versions` does.

    >>> DebianVersion("1.0~rc1") < DebianVersion("1.0") < DebianVersion("1.0-1") < DebianVersion("1:0.9")
    True
    """

    __slots__ = ("_key", "text", "upstream")

    def __init__(self, text: str) -> None:
        """Raises `ImageError` for text that is no version."""
        matched = _VERSION.fullmatch(text)
        if matched is None:
            raise ImageError(f"expected a Debian version such as 1:2.41-12+deb13u1, got {text!r}")
        self.text = text
        self.upstream: Final[str] = matched["upstream"] or matched["upstream_alone"]
        epoch = int(matched["epoch"] or matched["epoch_alone"] or 0)
        self._key = (epoch, _ordered(self.upstream), _ordered(matched["revision"] or ""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DebianVersion) and self._key == other._key

    def __lt__(self, other: DebianVersion) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"DebianVersion({self.text!r})"


def _ordered(part: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Returns what compares as the part does: runs of other characters and numbers, in turn.

    In a run, `~` is before its end, its end before letters, letters before all others. An absent number is 0.
    """
    found = [(letters, number) for letters, number in _PARTS.findall(part) if letters or number] or [("", "")]
    pairs = [((*map(_order, letters), _END), int(number or 0)) for letters, number in found]
    return (*pairs, ((_END,), 0))


def _order(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + _LETTERS_FIRST
