"""Ranges of sizes and the arithmetic of costs, in unsigned 64 bits that stop at their end."""

from __future__ import annotations

import math
from typing import NamedTuple

LARGEST = (1 << 64) - 1


class Size(NamedTuple):
    """The fewest and the most characters, bytes, items or entries a value can have."""

    least: int
    most: int

    def plus(self, other: Size) -> Size:
        return Size(capped(self.least + other.least), capped(self.most + other.most))

    def times(self, other: Size) -> Size:
        return Size(capped(self.least * other.least), capped(self.most * other.most))

    def union(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN = Size(0, LARGEST)
ONE = Size(1, 1)


class EntrySize(NamedTuple):
    """The sizes of what a list or map contains; a list's keys are its indices."""

    is_list: bool
    key: Size
    value: Size

    def union(self, other: EntrySize | None) -> EntrySize | None:
        if other is None:
            return None
        return EntrySize(self.is_list, self.key.union(other.key), self.value.union(other.value))


def capped(number: int) -> int:
    return min(number, LARGEST)


def scaled(number: int, factor: float) -> int:
    """`number` times `factor`, rounded up."""
    product = math.ceil(float(number) * factor)
    return LARGEST if product >= 1 << 64 else product
